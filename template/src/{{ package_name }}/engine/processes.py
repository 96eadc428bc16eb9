"""Processes that run a job for this one. Lightning is imported once, before they are forked."""

import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from multiprocessing.util import Finalize
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

from . import failures, logs, run_record
from .config import Config
from .devices import Devices
from .preloading import libraries
from .stop import SIGNALS, Interrupted, announce, listen_all_its_life, request

PRELOADED = ["lightning.pytorch", "torchmetrics", f"{__package__}.job"]
REPEAT_SECONDS = 1.0  # between two signals to processes that may not have listened to the first


class Task(NamedTuple):
    """What a new process needs to know.

    Attributes:
        config: The resolved config.
        devices: Those of the whole job.
        environment: Variables of the starting process; the server that forks keeps those of its own start.
        directory: Its working directory.
        scratch: Where the processes of the job leave their ids and how they failed.
    """

    config: Config
    devices: Devices
    environment: dict[str, str]
    directory: str
    scratch: Path


def fork_server(preloaded: list[str]) -> ForkServerContext:
    """Starts the server that forks processes, unless it runs already; it imports the modules that they will need.

    It ends with this process. It ignores signals, and so do its processes until they listen: Ctrl-C reaches every
    process of a terminal, and one that it ended too early would look as if it had done its work.
    """
    if multiprocessing.get_start_method(allow_none=True) not in (None, *multiprocessing.get_all_start_methods()):
        multiprocessing.set_start_method(None, force=True)  # joblib's, which new processes do not know
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(preloaded)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
    try:
        forkserver.ensure_running()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return context


def job_server(config: Config) -> ForkServerContext:
    """The server of a job's processes: it imports Lightning and the libraries of the job."""
    return fork_server([*PRELOADED, *libraries(config)])


def make_task(config: Config, devices: Devices, scratch: str) -> Task:
    return Task(config, devices, dict(os.environ), str(Path.cwd()), Path(scratch))


def perform(task: Task, rank: int) -> dict[str, float] | int:
    """The whole life of a new process: returns the job's metrics, or the number of the signal that all ranks obeyed.

    After any other end it leaves a report and does not return: a rank that is left waiting somewhere in the ruins of a
    job would keep the others from ending.
    """
    try:
        ended: dict[str, float] | int = _job(task, rank)
    except BaseException as error:
        if not isinstance(error, Interrupted) or not error.agreed:
            request.reached = True  # the launcher sends SIGTERM as soon as another rank has ended
            failures.report(task.scratch, rank, error)
            end_now(1)
        ended = error.signum
    request.reached = False  # nothing is left to protect if the parent is gone
    # Nobody may signal it any more: the launcher would wait for ever for one that is killed while it waits for the rest
    (task.scratch / f"pid-{rank}").unlink()
    return ended


def _job(task: Task, rank: int) -> dict[str, float]:
    log_file = Path(task.config["paths"]["run"]) / logs.file_name(rank)
    listen_all_its_life(log_file, task.scratch)
    multiprocessing.set_start_method(None, force=True)  # the workers of loaders start as they would in any process
    os.environ.update(task.environment)
    os.chdir(task.directory)
    (task.scratch / f"pid-{rank}").write_text(str(os.getpid()))
    if rank > 0:
        logs.redirect_output(log_file)
    import torch

    from . import job

    # At the very end: a slower rank may still read what this one sent last
    Finalize(None, _leave_group, exitpriority=0)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // len(task.devices.indices)))
    return job.run(task.config, task.devices)


def _leave_group() -> None:
    from torch import distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()


def end_now(code: int) -> NoReturn:
    """Ends this process and the workers of its loaders, without waiting for anything in it."""
    for child in multiprocessing.active_children():
        child.kill()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


def blame(task: Task, exit_codes: dict[int, int]) -> BaseException:
    """What to raise for a job that failed; its record then says which rank failed first."""
    rank, error = failures.first_failure(task.scratch, task.devices.world_size, exit_codes)
    run_record.mark(Path(task.config["paths"]["run"]), error, rank if task.devices.world_size > 1 else None)
    return error


@contextmanager
def passing_signals_on(task: Task) -> Generator[None]:
    """Sends the first signal on to the job's processes, until they have ended; a second Ctrl-C kills them.

    Raises:
        Interrupted: at the end, if there was a signal; at the third one, wherever this process is.
    """
    told: list[int] = []
    done = threading.Event()

    def send(signum: int) -> None:
        for file in task.scratch.glob("pid-*"):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(file.read_text()), signum)

    def repeat() -> None:
        while not done.wait(REPEAT_SECONDS):
            send(told[0])

    def handle(signum: int, frame: FrameType | None) -> None:
        told.append(signum)
        if len(told) == 1:
            announce(signum)
            send(signum)
            threading.Thread(target=repeat, daemon=True).start()
        elif len(told) > 2:
            raise Interrupted(told[0])
        elif signum == signal.SIGINT:
            send(signal.SIGKILL)

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    except (Exception, Interrupted) as error:
        if told:  # they were cut short
            interrupted = Interrupted(told[0])
            run_record.mark(Path(task.config["paths"]["run"]), interrupted)
            raise interrupted from error
        raise
    finally:
        done.set()
        for number, handler in before.items():
            signal.signal(number, handler)
    if told:
        raise Interrupted(told[0], agreed=True)
