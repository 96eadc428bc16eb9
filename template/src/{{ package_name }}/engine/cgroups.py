"""What a container may use of its machine: the limits of this process's control groups, of version 1 or 2."""

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MEMBERSHIP = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")


def cpu_limit() -> float:
    """Cores' worth of time, infinite where nothing limits it."""
    limits = [math.inf]
    for folder in _groups("cpu"):
        with suppress(OSError, ValueError):  # "max", or no such file
            if (folder / "cpu.max").exists():
                quota, period = map(int, (folder / "cpu.max").read_text("ascii").split())
            else:
                files = (folder / f"cpu.cfs_{part}_us" for part in ("quota", "period"))
                quota, period = (int(file.read_text("ascii")) for file in files)
            limits += [quota / period] if quota > 0 else []
    return min(limits)


def memory_limit() -> float:
    """Bytes, infinite where nothing limits them."""
    limits = [math.inf]
    for folder in _groups("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with suppress(OSError, ValueError):
                limits.append(int((folder / name).read_text("ascii")))
    return min(limits)


def _groups(controller: str) -> Iterator[Path]:
    """The folders of this process's group and of those above it, which limit it too."""
    with suppress(OSError):
        for line in MEMBERSHIP.read_text("utf-8").splitlines():
            _, controllers, path = line.split(":", maxsplit=2)
            if not controllers or controller in controllers.split(","):
                root = MOUNT / controller if controllers else MOUNT
                group = root / path.lstrip("/")
                yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(root))
