"""The project's package. `load_run` is imported on first use, so that the command line answers without torch."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine.runs import load_run

__all__ = ["load_run"]


def __getattr__(name: str) -> Any:
    if name == "load_run":
        from .engine.runs import load_run

        return load_run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
