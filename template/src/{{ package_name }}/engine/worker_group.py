"""Several devices of this machine: a worker group of torch's elastic launcher, with one process per device."""

import logging
import os
import signal
import tempfile
from pathlib import Path

from .config import Config
from .devices import Devices
from .processes import Task, blame, job_server, make_task, passing_signals_on, perform
from .stop import Interrupted

SHUTDOWN_SECONDS = 5  # between asking processes to end and killing them


def run(config: Config, devices: Devices) -> dict[str, float]:
    """Runs a job in one process per device and returns the metrics of rank 0.

    Raises:
        JobFailed: a rank raised, was killed or hung; the others were ended.
        UserError: a rank found a mistake in what was asked.
        Interrupted: a signal ended the job.
    """
    job_server(config)  # it imports Lightning while this process imports torch
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    launchers = ("torch.distributed.elastic", "torch.multiprocessing")
    for name in [name for name in logging.root.manager.loggerDict if name.startswith(launchers)]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what it says of a failure is said here, once
    environment = dict(os.environ)
    quit_handler = signal.getsignal(signal.SIGQUIT)
    with tempfile.TemporaryDirectory() as scratch:
        task = make_task(config, devices, scratch)
        group = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=len(devices.indices),
            run_id=Path(config["paths"]["run"]).name,
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            local_addr="localhost",
            max_restarts=0,
            monitor_interval=0.1,
            start_method="forkserver",
            shutdown_timeout=SHUTDOWN_SECONDS,
            signals_to_handle="SIGQUIT",  # the others are ours
            logs_specs=DefaultLogsSpecs(log_dir=scratch),
        )
        try:
            with passing_signals_on(task):
                try:
                    ended: dict[int, dict[str, float] | int] = elastic_launch(group, rank_process)(task)
                except ChildFailedError as error:
                    exit_codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
                    raise blame(task, exit_codes) from None
        except SignalException as error:
            raise Interrupted(signal.SIGQUIT) from error
        finally:  # the launcher leaves its signal handler and variables behind
            signal.signal(signal.SIGQUIT, quit_handler)
            os.environ.clear()
            os.environ.update(environment)
    if isinstance(ended[0], int):  # one rank alone was told, and all have obeyed
        raise Interrupted(ended[0], agreed=True)
    return ended[0]


def rank_process(task: Task) -> dict[str, float] | int:
    """What each process of the group runs."""
    return perform(task, int(os.environ["RANK"]))
