"""How many cores this process may use, and how many of them load data."""

import os

from .cgroups import cpu_limit


def usable_cores() -> int:
    """The cores that the system gives this process, or what its container may use of them, if that is less."""
    return max(1, int(min(len(os.sched_getaffinity(0)), cpu_limit())))


def loader_workers(devices: int) -> int:
    """What `data.num_workers=auto` is: the cores, shared by the devices of this machine, at most 8."""
    cores = usable_cores() // devices
    if "SLURM_PROCID" in os.environ:  # a task of srun, whose cores are its own
        cores = int(os.environ.get("SLURM_CPUS_PER_TASK", cores))
    return min(8, cores)
