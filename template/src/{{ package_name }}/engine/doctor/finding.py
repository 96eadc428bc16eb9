"""What is said of each thing that was looked at."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

INSTALL = "pip install -c constraints.txt -e ."


@dataclass(frozen=True)
class Finding:
    """One line of the doctor.

    Attributes:
        name: What was looked at.
        found: What it is like.
        status: A `note` is worth knowing, a `warning` may cost time; what `failed` stands in the way of a training.
        cure: What to do about it.
    """

    name: str
    found: str
    status: Literal["ok", "note", "warning", "failed"] = "ok"
    cure: str = ""


def warn_if(bad: bool, name: str, found: str, cure: str) -> Finding:
    """A finding that needs its cure only where it is bad."""
    return Finding(name, found, "warning", cure) if bad else Finding(name, found)


def attempt(name: str, check: Callable[..., Iterator[Finding]], *facts: Any) -> Iterator[Finding]:
    """The findings of a check; one that cannot be made, such as for want of a library, is a finding too."""
    try:
        yield from check(*facts)
    except Exception as error:
        cure = INSTALL if isinstance(error, ImportError) else "the doctor knows Linux, with /proc and /dev/shm mounted"
        yield Finding(name, f"cannot be checked: {one_line(error)}", "failed", cure)


def one_line(error: Exception) -> str:
    """Its type and the first line of its message."""
    first, _, _ = str(error).partition("\n")
    return f"{type(error).__name__}: {first}"
