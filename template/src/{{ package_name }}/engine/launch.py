"""Who runs a job: this process, or one new process for each device."""

import json
import logging
import os
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import batch_size, devices
from .config import Config, plain
from .errors import UserError

if TYPE_CHECKING:
    from omegaconf import DictConfig

SHUTDOWN_SECONDS = 5  # between asking the other ranks to stop and ending them


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class RankFailed(RuntimeError):
    """A process of a job failed; the message ends with its own traceback."""


def launch(config: "DictConfig") -> dict[str, float]:
    """Resolves the config once and runs it on the devices that it asks for."""
    resolved = plain(config)
    trainer = resolved["trainer"]
    chosen = devices.choose(trainer["accelerator"], trainer["devices"], trainer["num_nodes"])
    batch_size.apply(resolved, chosen.world_size)  # refuses here, before a process starts, what no rank could work with
    if chosen.world_size == 1:
        from . import job

        return job.run(resolved, chosen)
    return _run_group(resolved, chosen)


def _run_group(config: Config, chosen: devices.Devices) -> dict[str, float]:
    """Runs a job in a worker group of torch's elastic launcher, which ends all ranks when one fails."""
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    directory = Path(config["paths"]["run"])
    directory.mkdir(parents=True, exist_ok=True)
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("torch.distributed.elastic")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what it says of a failure is said here, once
    environment, handlers = dict(os.environ), {number: signal.getsignal(number) for number in SIGNALS}
    with tempfile.TemporaryDirectory() as reports:
        group = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=len(chosen.indices),
            run_id=directory.name,
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            local_addr="localhost",
            max_restarts=0,
            monitor_interval=0.1,
            shutdown_timeout=SHUTDOWN_SECONDS,
            logs_specs=DefaultLogsSpecs(log_dir=reports),
        )
        try:
            results: dict[int, dict[str, float]] = elastic_launch(group, worker)(config, chosen)
            return results[0]
        except ChildFailedError as error:
            raise _first_failure(Path(reports), error) from None
        except SignalException as error:
            raise KeyboardInterrupt from error
        finally:  # the launcher leaves its signal handlers and variables behind
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.environ.clear()
            os.environ.update(environment)


def worker(config: Config, chosen: devices.Devices) -> dict[str, float]:
    """The entry of each rank; ranks other than 0 write to a log of their own."""
    rank = int(os.environ["RANK"])
    if rank > 0:
        file = os.open(Path(config["paths"]["run"]) / f"rank-{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.close(file)
    from . import job

    try:
        return job.run(config, chosen)
    finally:
        import torch.distributed

        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def _first_failure(reports: Path, error: Any) -> Exception:
    """The failure that came first, as the rank itself reported it; the launcher names the one that it saw first."""
    found: list[tuple[int, str, str, str]] = []
    for file in reports.rglob("error.json"):
        try:
            message = json.loads(file.read_text(encoding="utf-8"))["message"]
            extra = message["extraInfo"]
            found.append((int(extra["timestamp"]), file.parent.name, message["message"], extra["py_callstack"]))
        except (json.JSONDecodeError, KeyError, TypeError):  # ended while it wrote
            continue
    if not found:
        rank, failure = error.get_first_failure()
        return RankFailed(f"rank {rank} ended with exit code {failure.exitcode} and no word")
    _, rank, message, traceback = min(found)
    kind, _, text = message.partition(": ")
    return UserError(text) if kind == UserError.__name__ else RankFailed(f"rank {rank} failed\n\n{traceback}")
