"""`resume=RUN` on the command line stands for the run's own options, its directory and its last checkpoint."""

from pathlib import Path

from .errors import UserError
from .path_options import quote_path_options, unquoted
from .run_folders import find_checkpoint, options_of
from .run_record import NAME


def expand(words: list[str], is_sweep: bool) -> list[str]:
    """Puts the options of the run before those of the command line, which win; `auto` and `null` stay as they are.

    Raises:
        UserError: there is no such run, it has no checkpoint, or it is asked for in a sweep.
    """
    given = [word for word in words if _key(word) != "resume"]
    values = [unquoted(word.partition("=")[2]) for word in words if _key(word) == "resume"]
    if not values or values[-1] in ("auto", "null", ""):
        return words
    if is_sweep:
        raise UserError(f"resume={values[-1]} goes on with one run: leave out -m")
    checkpoint = find_checkpoint(values[-1], ("last.ckpt",)).absolute()
    run = checkpoint.parent.parent
    if not (run / NAME).exists() or not (run / ".hydra" / "overrides.yaml").exists():
        raise UserError(f"{checkpoint} lies in no run's directory: move it into one, or name another")
    replaced = {"resume", "resume_schedule", "init_from", "hydra.run.dir", *map(_key, given)}
    return [
        *(word for word in options_of(run) if _key(word) not in replaced),
        *given,
        *quote_path_options([f"hydra.run.dir={run}", f"resume={checkpoint}"]),
    ]


def _key(word: str) -> str:
    return word.partition("=")[0].lstrip("+~")


def resumed_checkpoint(run: Path, value: str | None) -> Path | None:
    """The checkpoint that the config's `resume` means; None where the run begins."""
    last = run / "checkpoints" / "last.ckpt"
    if value == "auto":
        return last if last.exists() else None
    return None if value is None else Path(value)
