"""Words of the command line that concern a whole sweep: `sweep=NAME` and `resume_sweep=DIR`."""

import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from hydra.errors import MissingConfigException

from ..errors import UserError
from ..path_options import quote_path_options, unquoted
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
    values = {key: unquoted(value) for key, _, value in (word.partition("=") for word in words)}
    name, asked = values.get("sweep"), values.get("resume_sweep")
    if name is not None and not re.fullmatch(r"[\w/.-]+", name):
        raise UserError(f"sweep={name}: a command runs one sweep, name one of them")
    if name not in (None, "default") and not is_sweep:
        sys.stderr.write(f"sweep={name} without -m runs one trial: type train -m sweep={name} for all of them\n")
    if asked in (None, "null"):
        return words
    if not asked:
        raise UserError("resume_sweep needs a sweep's directory, or latest: type train -m resume_sweep=latest")
    if not is_sweep:
        raise UserError(f"resume_sweep={asked} goes on with a sweep: type train -m resume_sweep={asked}")
    directory = latest_sweep(Path("runs")) if asked == "latest" else Path(asked)
    if Path(values.get("hydra.sweep.dir", directory)).resolve() != directory.resolve():
        raise UserError(f"resume_sweep={asked} goes on in the sweep's own directory: leave out hydra.sweep.dir")
    if not (directory / RECORD).is_file():
        raise UserError(f"{directory} is no sweep's directory: it holds no {RECORD}")
    given = [word for word in words if _key(word) not in ("resume_sweep", "hydra.sweep.dir")]
    replaced = set(map(_key, given))
    try:
        own: list[str] = _record(directory)["words"]
    except ValueError:
        raise UserError(f"{directory / RECORD} is damaged: start the sweep anew, in another directory") from None
    return [
        *(word for word in own if _key(word) not in replaced),
        *given,
        *quote_path_options([f"hydra.sweep.dir={directory}"]),
    ]


def latest_sweep(runs: Path) -> Path:
    """The directory of the sweep below `runs` whose last command is the newest."""
    found: list[tuple[str, Path]] = []
    for file in runs.rglob(RECORD):
        with suppress(ValueError):
            found.append((_record(file.parent)["started"], file.parent))
    if not found:
        raise UserError(f"{runs} holds no sweep: start one with train -m")
    return max(found)[1]


def _record(directory: Path) -> dict[str, Any]:
    """Raises ValueError where it is damaged."""
    record = json.loads((directory / RECORD).read_text(encoding="utf-8"))
    if not isinstance(record, dict) or not {"started", "words"} <= record.keys():
        raise ValueError("no record of a sweep")
    return record


def missing_plugin(error: BaseException) -> str | None:
    """What to type where a plugin of Hydra is not installed; None for other errors."""
    plugin = error.missing_cfg_file if isinstance(error, MissingConfigException) else None
    if plugin not in EXTRAS:
        return None
    return f"{plugin} needs a library that is missing: pip install -c constraints.txt -e '.[{EXTRAS[plugin]}]'"


def _key(word: str) -> str:
    return word.partition("=")[0].lstrip("+~")
