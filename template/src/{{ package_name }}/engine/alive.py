"""Whether the process that wrote something down is still there, told by what it noted of itself."""

import os
import platform
from pathlib import Path
from typing import Any

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def this_process() -> dict[str, Any]:
    """Host, number and, where the system tells it, the start of this process: the system gives numbers again."""
    return {"host": platform.node(), "pid": os.getpid(), "start": _start(os.getpid())}


def is_alive(process: dict[str, Any]) -> bool | None:
    """Whether the process that `this_process` described is still there; None where another host has to say."""
    if process["host"] != platform.node():
        return None
    try:
        os.kill(process["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        pass
    return _start(process["pid"]) == process["start"]


def _start(pid: int) -> str | None:
    """The boot of the machine and the clock tick after it at which the process began; None without `/proc`.

    A process that has ended and waits for its parent to notice has none either.
    """
    try:
        boot = BOOT_ID.read_text(encoding="ascii").strip()
        state, *fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else f"{boot} {fields[18]}"  # field 22 of proc(5), the state being the third
