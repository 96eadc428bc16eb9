"""Memory, cores, disk, login and variables of this machine."""

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from .. import ranks
from ..cgroups import memory_limit
from ..cores import loader_workers, usable_cores
from ..wandb_login import wandb_login
from .finding import Finding, warn_if

GIB = 2**30
CHUNK, MOST = 2**22, 2**26  # bytes that are written at once, and in all
SLOW = 20e6  # bytes a second


def check(folder: Path, devices: int) -> list[Finding]:
    """All of them; `devices` share the cores, and runs are written to `folder`."""
    lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    memory = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    return [
        judge_memory(memory["MemAvailable"], memory["MemTotal"], memory_limit()),
        judge_shared_memory(shutil.disk_usage("/dev/shm").free),
        Finding(
            "cores",
            f"{usable_cores()} of {os.cpu_count()}: data.num_workers=auto is {loader_workers(devices)} for each device",
        ),
        write(folder),
        judge_login(wandb_login()),
        judge_variables(os.environ | ranks.forgotten),
    ]


def judge_memory(free: int, total: int, limit: float) -> Finding:
    found = f"{free / GIB:.1f} of {total / GIB:.1f} GiB free"
    if limit < total:
        found += f", but the container is limited to {limit / GIB:.1f}"
    return warn_if(min(free, limit) < 2 * GIB, "memory", found, "end what else runs here, or ask for more memory")


def judge_shared_memory(free: int) -> Finding:
    found = f"{free / GIB:.2f} GiB free for the batches of workers"
    return warn_if(free < GIB, "/dev/shm", found, "docker run --shm-size=8g (or --ipc=host), or data.num_workers=0")


def write(folder: Path) -> Finding:
    """Writes up to 64 MiB into a file without a name, for about a second."""
    written, began = 0, time.monotonic()
    try:
        folder = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        free = shutil.disk_usage(folder).free
        with tempfile.TemporaryFile(dir=folder) as file:
            while written < MOST and time.monotonic() < began + 1:
                written += os.write(file.fileno(), os.urandom(CHUNK))
                os.fsync(file.fileno())
    except OSError as error:
        found = f"{folder} cannot be written: {error.strerror}"
        return Finding("disk", found, "failed", "make room or get the right to write, or type paths.runs=FOLDER")
    speed = written / (time.monotonic() - began)
    found = f"{folder}: {free / GIB:.1f} GiB free, writes {speed / 1e6:.0f} MB/s"
    return warn_if(free < 2 * GIB or speed < SLOW, "disk", found, "paths.runs=FOLDER writes checkpoints elsewhere")


def judge_login(where: str | None) -> Finding:
    if where is None:
        return Finding("W&B", "no key: logger=wandb writes offline", "note", "wandb login, where you want it online")
    return Finding("W&B", f"a key in {where}")


def judge_variables(environment: Mapping[str, str]) -> Finding:
    """The variables by which a launcher numbers its processes; a shell may have kept them from another job."""
    in_slurm_job = "SLURM_JOB_ID" in environment  # which numbers the process of its script as well
    names = [name for name in ranks.LEAKS if name in environment and not (in_slurm_job and name.startswith("SLURM_"))]
    if not names:
        return Finding("variables", "none that a launcher has left behind")
    found = f"{', '.join(names)} of another job, which this project ignores"
    if all(name in environment for name in ranks.NEEDED) and environment["WORLD_SIZE"] != "1":
        found = f"this is rank {environment['RANK']} of {environment['WORLD_SIZE']}: a training waits for the others"
    return Finding("variables", found, "warning", f"if no launcher started this, type: unset {' '.join(names)}")
