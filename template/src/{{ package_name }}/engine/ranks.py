"""Processes that torchrun or SLURM started: rank 0 reads the command line and sends each job to the others."""

import os
import pickle
import sys
import threading
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from . import failures, logs, run_record
from .config import Config
from .devices import TIMEOUT, Devices
from .errors import UserError
from .processes import end_now
from .stop import REPORTS, Interrupted, listen_all_its_life, request

JOIN_SECONDS = 600  # in which all ranks must have started: nodes of a cluster begin at different times
NOTICE_SECONDS = 5  # after which a rank that waits for the others says so
NEEDED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR")
# What Lightning and torch would believe of a process that is no rank: a shell may have kept them from another job.
LEAKS = (
    *NEEDED,
    *("LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID"),
    *("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "JSM_NAMESPACE_RANK"),
)
INTERACTIVE = ("SLURM_PTY_PORT", "SLURM_PTY_WIN_COL")  # of a shell that `srun --pty` opened


class Place(NamedTuple):
    """This process among all of the job."""

    rank: int
    world_size: int
    local_world_size: int


forgotten: dict[str, str] = {}  # variables of other jobs that `find_place` took out of the environment
_store: Any = None
_is_lost = False
_jobs = 0


def find_place() -> Place | None:
    """This process's place if torchrun or SLURM started it as one of several; None where it is alone.

    A lone process forgets the variables of other jobs. Those that SLURM sets for a task become torchrun's.

    Raises:
        UserError: SLURM has spread the tasks unevenly.
    """
    if not all(name in os.environ for name in NEEDED):
        _read_slurm()
    if all(name in os.environ for name in NEEDED) and (world_size := _number("WORLD_SIZE")) > 1:
        os.environ.setdefault("LOCAL_WORLD_SIZE", str(world_size))
        place = Place(_number("RANK"), world_size, _number("LOCAL_WORLD_SIZE"))
        if place.world_size % place.local_world_size:
            raise UserError(f"{world_size} ranks are not {place.local_world_size} on every machine: start equally many")
        return place
    forgotten.update((name, os.environ.pop(name)) for name in LEAKS if name in os.environ)
    return None


def _number(name: str) -> int:
    try:
        return int(os.environ[name])
    except ValueError:
        raise UserError(f"{name}={os.environ[name]} is no number: type unset {name}") from None


def _read_slurm() -> None:
    task = os.environ.get
    tasks = int(task("SLURM_STEP_NUM_TASKS", "1"))  # set by srun only, not by sbatch or salloc
    if tasks == 1 or "SLURM_PROCID" not in os.environ or any(name in os.environ for name in INTERACTIVE):
        return
    nodes = int(task("SLURM_STEP_NUM_NODES", task("SLURM_NNODES", "1")))
    if tasks % nodes:
        raise UserError(f"SLURM runs {tasks} tasks on {nodes} nodes: give each node as many, with --ntasks-per-node")
    if "MASTER_ADDR" not in os.environ:
        from lightning.fabric.plugins.environments import SLURMEnvironment

        nodelist = task("SLURM_STEP_NODELIST", task("SLURM_NODELIST", "localhost"))
        os.environ["MASTER_ADDR"] = SLURMEnvironment.resolve_root_node_address(nodelist)
    os.environ.setdefault("MASTER_PORT", str(15000 + int(task("SLURM_JOB_ID", "0")) % 15000))
    os.environ |= {
        "RANK": task("SLURM_PROCID", "0"),
        "WORLD_SIZE": str(tasks),
        "LOCAL_RANK": task("SLURM_LOCALID", "0"),
        "LOCAL_WORLD_SIZE": str(tasks // nodes),
        "GROUP_RANK": task("SLURM_NODEID", "0"),
    }


def meet() -> None:
    """Waits until all ranks have started.

    Raises:
        UserError: the port is taken, or a rank did not come.
    """
    _connect()


def lead(config: Config, devices: Devices) -> dict[str, float]:
    """Runs a job on all ranks, from rank 0. A failure ends this process: the others have ended or will."""
    for left in Path(config["paths"]["run"]).glob(REPORTS):  # by the job that this one goes on with
        left.unlink()
    _send(pickle.dumps((config, devices)))
    return _perform(config, devices, 0)


def dismiss() -> None:
    """Tells the other ranks that no job will follow."""
    with suppress(Exception):  # they may have gone
        if not _is_lost:
            _send(pickle.dumps(None))


def follow(rank: int) -> None:
    """Runs the jobs that rank 0 sends, until there are no more."""
    while (job := pickle.loads(_receive())) is not None:
        config, devices = job
        _perform(config, devices, rank)


def _send(message: bytes) -> None:
    global _jobs
    _connect().set(f"job-{_jobs}", message)
    _jobs += 1


def _receive() -> bytes:
    global _jobs
    store, key = _connect(), f"job-{_jobs}"
    store.wait([key], timedelta(days=1))
    _jobs += 1
    message: bytes = store.get(key)
    return message


def _connect() -> Any:
    """The store that all ranks share, at MASTER_ADDR:MASTER_PORT.

    Raises:
        UserError: the port is taken, or a rank did not come.
    """
    global _store, _is_lost
    if _store is None:
        from torch.distributed import DistError, PrefixStore, rendezvous

        address = f"MASTER_ADDR={os.environ['MASTER_ADDR']} MASTER_PORT={os.environ.setdefault('MASTER_PORT', '29500')}"
        ranks = os.environ["WORLD_SIZE"]
        notice = f"waiting for {ranks} ranks at {address} (is there but this one? unset {' '.join(NEEDED)})\n"
        patience = threading.Timer(NOTICE_SECONDS, lambda: sys.stderr.write(notice))
        patience.daemon = True
        patience.start()
        try:
            store, _, _ = next(rendezvous("env://", timeout=timedelta(seconds=JOIN_SECONDS)))
        except DistError as error:
            _is_lost = True
            reason = str(error).strip().splitlines()[0]
            raise UserError(
                f"the {ranks} ranks did not meet at {address}: {reason} (if this process is none "
                f"of several, type: unset {' '.join(NEEDED)}; if the port is taken, choose another MASTER_PORT)"
            ) from error
        finally:
            patience.cancel()
        _store = PrefixStore("jobs", store)
    return _store


def _perform(config: Config, devices: Devices, rank: int) -> dict[str, float]:
    from torch import distributed

    from . import job

    directory = Path(config["paths"]["run"])
    log_file = directory / logs.file_name(rank)
    console = os.dup(2)
    listen_all_its_life(log_file, directory)
    if rank > 0:
        logs.redirect_output(log_file)
    try:
        distributed.init_process_group(
            "nccl" if devices.kind == "cuda" else "gloo",
            store=distributed.PrefixStore(f"group-{_jobs}", _connect()),
            rank=rank,
            world_size=devices.world_size,
            timeout=timedelta(seconds=config["strategy"].get("timeout", TIMEOUT)),
        )
        metrics = job.run(config, devices)
    except BaseException as error:
        if isinstance(error, Interrupted) and error.agreed:
            _end_together(rank, devices.world_size)
            raise
        _fail(directory, rank, devices.world_size, error, console)
    os.close(console)
    _end_together(rank, devices.world_size)
    distributed.destroy_process_group()
    return metrics


def _end_together(rank: int, world_size: int) -> None:
    """Waits for all ranks: one may still read what this one sent last, and torchrun ends all with the first."""
    with suppress(Exception):  # the rank that keeps the store may end before the others have seen all of it
        _connect().set(f"end-{_jobs}-{rank}", b"")
        _connect().wait([f"end-{_jobs}-{other}" for other in range(world_size)], timedelta(seconds=TIMEOUT))


def _fail(directory: Path, rank: int, world_size: int, error: BaseException, console: int) -> NoReturn:
    """Finds out with the other ranks who failed first, has that told once, and ends: there is no job to go on with."""
    request.reached = True  # torchrun sends SIGTERM to the ranks that are left as soon as one has ended
    from torch.distributed.elastic.multiprocessing.errors import get_error_handler

    is_echo = failures.report(directory, rank, error).is_echo
    if not is_echo and isinstance(error, Exception) and not isinstance(error, UserError):
        get_error_handler().record_exception(error)  # torchrun shows it in its summary
    failures.wait_for_all(directory, world_size)
    first, failure = failures.first_failure(directory, world_size, {})
    run_record.mark(directory, failure, first)
    if rank == min(report.rank for report in failures.collect(directory)):
        os.write(console, f"{failure}\n".encode())
    if isinstance(failure, Interrupted):
        end_now(128 + failure.signum)
    end_now(2 if isinstance(failure, UserError) else 1)
