"""Reading what runs left on the disk, finished or not; neither torch nor Hydra is imported."""

import json
import math
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # pyrefly: ignore[untyped-import]

from .. import history_file, run_record
from ..errors import UserError
from ..run_table import status_of

REPEATS = ("seeding.seed", "data.seed", "data.fold")  # what repetitions of one configuration differ in
IRRELEVANT = ("paths", "hydra", "sweep", "resume_sweep", "logger", "project", "resume", "check", "test")

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster, where libyaml is there


@dataclass
class Run:
    """A run: its directory, its record, its config with dotted keys, and the columns of its history."""

    directory: Path
    status: str
    record: dict[str, Any]
    config: dict[str, Any]
    history: dict[str, list[float]]

    @property
    def metric(self) -> str:
        """What the run is judged by: the metric of its sweep, or the monitored one."""
        chosen = self.config.get("sweep.metric") or self.record.get("monitor") or self.config.get("model.monitor")
        return str(chosen or "val/loss")

    @property
    def sign(self) -> int:
        """1 where small values of the metric are good, -1 where large ones are."""
        chosen = self.config.get("sweep.metric") and self.config.get("sweep.direction")
        return -1 if str(chosen or self.config.get("model.mode")).startswith("max") else 1

    @property
    def judged_by(self) -> str:
        """The metric and which values of it are better."""
        return f"{self.metric} {'(largest)' if self.sign < 0 else '(least)'}"

    @property
    def best(self) -> float:
        """The best value of the metric over the run, validations within an epoch included; NaN without one."""
        if self.record.get("monitor") == self.metric and (score := _number(self.record.get("best_score"))) == score:
            return score
        values = [value for value in self.history.get(self.metric, ()) if math.isfinite(value)]
        return min(values, key=lambda value: self.sign * value) if values else math.nan

    @property
    def last(self) -> float:
        values = [value for value in self.history.get(self.metric, ()) if value == value]
        return values[-1] if values else _number(self.metrics.get(self.metric))

    @property
    def metrics(self) -> dict[str, Any]:
        metrics = self.record.get("metrics")
        return metrics if isinstance(metrics, dict) else {}

    @property
    def test(self) -> dict[str, float]:
        return {name: _number(value) for name, value in self.metrics.items() if name.startswith("test/")}

    @property
    def seconds(self) -> float:
        """How long it lasted, or has lasted until now; pauses before it went on are left out."""
        seconds = _number(self.record.get("seconds"))
        if self.status == "running":
            seconds += time.time() - (self.directory / run_record.NAME).stat().st_mtime
        return seconds

    @property
    def seed(self) -> Any:
        return self.record.get("seed", self.config.get("seeding.seed"))

    @property
    def repetition(self) -> tuple[Any, ...]:
        """Its seeds and its fold: another run with the same ones says nothing new."""
        return self.seed, *(self.config.get(key) for key in REPEATS if key != "seeding.seed")

    @property
    def sweep(self) -> Path | None:
        parent = self.directory.parent
        return parent if (parent / "multirun.yaml").exists() else None


def read_runs(folders: Iterable[Path]) -> list[Run]:
    """The runs in and below the folders, by their directories' names.

    Raises:
        UserError: a folder does not exist or holds no run.
    """
    found: dict[Path, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is no folder: train first, or name the folder that holds the runs")
        records = list(folder.rglob(run_record.NAME))
        if not records:
            raise UserError(f"no run below {folder}: train first, or name the folder that holds the runs")
        found |= {record.parent.resolve(): record.parent for record in records}
    return [_read_run(directory) for directory in sorted(found.values(), key=_natural)]


def sweeps(runs: list[Run]) -> dict[Path, list[Run]]:
    """The runs that are trials, by the folder of their sweep; only those that are judged as its last one is."""
    found: dict[Path, list[Run]] = {}
    for run in runs:
        if run.sweep:
            found.setdefault(run.sweep, []).append(run)
    return {
        folder: [trial for trial in trials if trial.judged_by == trials[-1].judged_by]
        for folder, trials in found.items()
    }


def _natural(path: Path) -> list[tuple[bool, int, str]]:
    """Sorts 10 behind 9, and words behind numbers."""
    numbers = [(part.isascii() and part.isdigit(), part) for part in path.parts]
    return [(not is_number, int(part) if is_number else 0, part) for is_number, part in numbers]


def _read_run(directory: Path) -> Run:
    record, status = _read_record(directory)
    if status == "killed":  # or it has ended since its record was read
        record, status = _read_record(directory)
    history: dict[str, list[float]] = {}
    for row in history_file.read(directory / history_file.NAME):
        for name, value in row.items():
            history.setdefault(name, []).append(_number(value))
    return Run(directory, status, record, dict(_flat("", read_config(directory))), history)


def _read_record(directory: Path) -> tuple[dict[str, Any], str]:
    try:
        record = run_record.read(directory)
        return record, status_of(record)
    except (OSError, UserError, ValueError, LookupError, TypeError, AttributeError):
        return {}, "unreadable"


def read_config(directory: Path) -> dict[str, Any]:
    """The config that a run was composed from; empty where it is missing or half-written."""
    content: Any = None
    with suppress(OSError, ValueError, yaml.YAMLError):
        content = yaml.load((directory / ".hydra" / "config.yaml").read_text(encoding="utf-8"), Loader)
    return content if isinstance(content, dict) else {}


def _flat(prefix: str, content: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, dict) and value:
            yield from _flat(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", value


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def texts(run: Run) -> dict[str, str]:
    """The config's values as text, without those in which repetitions differ, or which change no result."""
    return {
        key: json.dumps(value, default=str)
        for key, value in run.config.items()
        if key not in REPEATS and key.partition(".")[0] not in IRRELEVANT
    }


def differing_keys(runs: list[Run]) -> list[str]:
    """The keys that have several values among the runs with a config, or that some of them lack."""
    known = [texts(run) for run in runs if run.config]
    keys = dict.fromkeys(key for values in known for key in values)
    return [key for key in keys if len({values.get(key) for values in known}) > 1]


def telling_keys(runs: list[Run], also_shared: bool = True) -> list[str]:
    """The differing keys without those arguments of a component that its name implies among these runs.

    Arguments that all runs have, such as `optimizer.lr`, stay unless `also_shared` is False.
    """
    keys, known = differing_keys(runs), [run.config for run in runs if run.config]
    parts = [key for key in keys if key.endswith("._target_")]

    def is_implied(key: str) -> bool:
        if key in parts or (also_shared and all(key in config for config in known)):
            return False
        inside = [part for part in parts if key.startswith(part.removesuffix("_target_"))]
        return any(_decides(part, key, known) for part in inside)

    return [key for key in keys if not is_implied(key)]


def _decides(part: str, key: str, configs: list[dict[str, Any]]) -> bool:
    return len({(config.get(part), str(config.get(key))) for config in configs}) == len(
        {config.get(part) for config in configs}
    )


def label(key: str) -> str:
    return key.removesuffix("._target_")


def shown(run: Run, key: str) -> str:
    """A value of the config for people: of a component its name only, nothing where there is none."""
    value = run.config.get(key, "")
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = f"{value:.6g}" if isinstance(value, float) else text
    return text.rpartition(".")[2] if key.endswith("._target_") else text


def settings(run: Run, keys: Iterable[str]) -> dict[str, str]:
    """The values of some keys for people, by label; where a component may be null, one label stands for two keys."""
    found: dict[str, str] = {}
    for key in keys:
        found[label(key)] = found.get(label(key)) or shown(run, key)
    return found
