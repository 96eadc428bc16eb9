"""Memory, cores, disk, login and variables of this machine."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .. import ranks
from ..cgroups import memory_limit
from ..cores import loader_workers, usable_cores
from ..wandb_login import wandb_login
from .finding import Finding, attempt, warn_if

MEMORY, SHARED_MEMORY = Path("/proc/meminfo"), Path("/dev/shm")
GIB = 2**30
CHUNK, MOST = 2**22, 2**26  # bytes that are written at once, and in all
SLOW = 20e6  # bytes a second


def check(folder: Path, devices: int) -> Iterator[Finding]:
    """All of them; `devices` share the cores, and runs are written to `folder`."""
    yield from attempt("memory", memory)
    yield from attempt("/dev/shm", shared_memory)
    yield from attempt("cores", cores, devices)
    yield from attempt("disk", disk, folder)
    yield from attempt("W&B", login)
    yield from attempt("variables", variables)


def memory() -> Iterator[Finding]:
    lines = MEMORY.read_text("ascii").splitlines()
    sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    free, total, limit = sizes["MemAvailable"], sizes["MemTotal"], memory_limit()
    found = f"{free / GIB:.1f} of {total / GIB:.1f} GiB free"
    if limit < total:
        found += f", but the container is limited to {limit / GIB:.1f}"
    yield warn_if(min(free, limit) < 2 * GIB, "memory", found, "end what else runs here, or ask for more memory")


def shared_memory() -> Iterator[Finding]:
    free = shutil.disk_usage(SHARED_MEMORY).free
    found = f"{free / GIB:.2f} GiB free for the batches of workers"
    yield warn_if(free < GIB, "/dev/shm", found, "docker run --shm-size=8g (or --ipc=host), or data.num_workers=0")


def cores(devices: int) -> Iterator[Finding]:
    found = f"{usable_cores()} of {os.cpu_count()}: data.num_workers=auto is {loader_workers(devices)} for each device"
    yield Finding("cores", found)


def disk(folder: Path) -> Iterator[Finding]:
    """Writes up to 64 MiB into a file without a name, for about a second."""
    chunk, written = os.urandom(CHUNK), 0  # which no file system compresses
    began = time.monotonic()
    try:
        folder = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        free = shutil.disk_usage(folder).free
        with tempfile.TemporaryFile(dir=folder) as file:
            while written < MOST and time.monotonic() < began + 1:
                written += os.write(file.fileno(), chunk)
                os.fsync(file.fileno())
    except OSError as error:
        found = f"{folder} cannot be written: {error.strerror}"
        yield Finding("disk", found, "failed", "make room or get the right to write, or type paths.runs=FOLDER")
        return
    speed = written / (time.monotonic() - began)
    found = f"{folder}: {free / GIB:.1f} GiB free, writes {speed / 1e6:.0f} MB/s"
    yield warn_if(free < 2 * GIB or speed < SLOW, "disk", found, "paths.runs=FOLDER writes checkpoints elsewhere")


def login() -> Iterator[Finding]:
    if where := wandb_login():
        yield Finding("W&B", f"a key in {where}")
    else:
        cure = "wandb login, where you want it online"
        yield Finding("W&B", "no key: logger=wandb writes offline", "note", cure)


def variables() -> Iterator[Finding]:
    """Those by which a launcher numbers its processes; a shell may have kept them from another job."""
    environment = os.environ | ranks.forgotten
    in_slurm_job = "SLURM_JOB_ID" in environment  # which numbers the process of its script as well
    names = [name for name in ranks.LEAKS if name in environment and not (in_slurm_job and name.startswith("SLURM_"))]
    if not names:
        yield Finding("variables", "none that a launcher has left behind")
        return
    cure = f"if no launcher started this, type: unset {' '.join(names)}"
    if ranks.find_place() is None:
        yield Finding("variables", f"{', '.join(names)} of another job, which this project ignores", "warning", cure)
        return
    found = f"this is rank {environment['RANK']} of {environment['WORLD_SIZE']}"
    if any(name in environment for name in ("TORCHELASTIC_RUN_ID", "SLURM_STEP_NUM_TASKS")):
        yield Finding("variables", found, "note", cure)
    else:
        yield Finding("variables", f"{found}: a training waits for the others", "failed", cure)
