"""Words of the command line that concern a whole sweep: `sweep=NAME` and `resume_sweep=DIR`."""

import json
import sys
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import MissingConfigException

from ..errors import UserError
from .directory import RECORD
from .summary import summarised

__all__ = ["expand", "missing_plugin", "summarised"]

EXTRAS = {
    **dict.fromkeys(
        ("hydra/launcher/joblib", "hydra/launcher/submitit_local", "hydra/launcher/submitit_slurm"), "sweeps"
    ),
    "hydra/sweeper/optuna": "sweeps",
    "hydra/launcher/ray": "ray",
}


def expand(words: list[str], is_sweep: bool) -> list[str]:
    """Puts the words of the sweep that goes on before those of the command line, which win.

    Raises:
        UserError: two sweeps are named, or one is to go on that is not there, or without `-m`.
    """
    values = {key: value.strip("'\"") for key, _, value in (word.partition("=") for word in words)}
    name = values.get("sweep")
    if name is not None and OverridesParser.create().parse_override(f"sweep={name}").is_sweep_override():
        raise UserError(f"sweep={name}: a command runs one sweep, name one of them")
    if name not in (None, "default") and not is_sweep:
        sys.stderr.write(f"sweep={name} without -m runs one trial: type train -m sweep={name} for all of them\n")
    asked = values.get("resume_sweep")
    if asked in (None, "null", ""):
        return words
    if not is_sweep:
        raise UserError(f"resume_sweep={asked} goes on with a sweep: type train -m resume_sweep={asked}")
    directory = latest_sweep(Path("runs")) if asked == "latest" else Path(asked)
    if not (directory / RECORD).is_file():
        raise UserError(f"{directory} is no sweep's directory: it holds no {RECORD}")
    given = [word for word in words if _key(word) != "resume_sweep"]
    replaced = {"hydra.sweep.dir", *map(_key, given)}
    own: list[str] = json.loads((directory / RECORD).read_text(encoding="utf-8"))["words"]
    return [*(word for word in own if _key(word) not in replaced), *given, f"hydra.sweep.dir='{directory}'"]


def latest_sweep(runs: Path) -> Path:
    """The directory of the sweep below `runs` that started last."""
    found = [
        (json.loads(file.read_text(encoding="utf-8"))["started"], file.parent) for file in runs.glob(f"*/*/{RECORD}")
    ]
    if not found:
        raise UserError(f"{runs} holds no sweep: start one with train -m")
    return max(found)[1]


def missing_plugin(error: BaseException) -> str | None:
    """What to type where a plugin of Hydra is not installed; None for other errors."""
    plugin = error.missing_cfg_file if isinstance(error, MissingConfigException) else None
    if plugin not in EXTRAS:
        return None
    return f"{plugin} needs a library that is missing: pip install -c constraints.txt -e '.[{EXTRAS[plugin]}]'"


def _key(word: str) -> str:
    return word.partition("=")[0].lstrip("+~")
