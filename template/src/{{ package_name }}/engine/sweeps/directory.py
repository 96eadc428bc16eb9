"""The directory of a sweep: its record, a directory for each trial, and what a sweep that goes on does not repeat."""

import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, open_dict

from ..errors import UserError
from ..run_record import NAME, is_running, read

RECORD = "sweep.json"
ENDED = "ended.txt"  # why no further trial of the sweep is worth starting
ABOUT_THE_SWEEP = ("sweep.", "launcher=", "resume_sweep=")
DIRECTIONS = {"min": "minimize", "max": "maximize"}

started: list[Path] = []  # directories of the sweeps that this process has begun


class SweepRefused(BaseException):
    """Carries an exception past Hydra, which would make a warning of it and go on."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class SweepDirectory(Callback):
    """Prepares the directory before the sweeper is built, and fits the sweeper's settings to what was asked.

    Raises:
        SweepRefused: the sweep cannot begin.
    """

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        try:
            self._prepare(config)
        except Exception as error:
            with suppress(OSError):  # it holds something, or was not made
                Path(config.hydra.sweep.dir).rmdir()
            raise SweepRefused(error) from error

    def _prepare(self, config: DictConfig) -> None:
        directory = Path(config.hydra.sweep.dir)
        with open_dict(config):
            _let_the_command_line_win(config)
            direction(config)
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UserError(f"{directory} cannot be written: {error.strerror}") from error
            (directory / ENDED).unlink(missing_ok=True)
            if "study_name" in config.hydra.sweeper:
                from . import study

                study.prepare(config)
        if not (record := directory / RECORD).exists():
            words = [*config.hydra.overrides.hydra, *config.hydra.overrides.task]
            now = datetime.now().astimezone().isoformat(timespec="microseconds")
            kept = [str(word) for word in words if not str(word).startswith(("hydra.sweep.dir", "hydra.mode"))]
            facts = {"started": now, "words": kept}
            record.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        started.append(directory)


def direction(config: DictConfig) -> str:
    """`minimize` or `maximize`: what `sweep.direction` says, or what follows from the monitored metric.

    Raises:
        UserError: it is neither, or nothing says which way another metric is better.
    """
    asked, metric = config.sweep.direction, config.sweep.metric
    if asked is None and metric in (None, config.model.get("monitor")):
        return DIRECTIONS[config.model.get("mode", "min")]
    if asked not in DIRECTIONS.values():
        raise UserError(
            f"sweep.direction must be minimize or maximize (got {'null' if asked is None else asked}): "
            f"which values of {metric or 'the monitored metric'} are better?"
        )
    return str(asked)


def trial_directory(sweep: str, number: int, overrides: Iterable[str]) -> str:
    """The name of a trial's directory: that of the finished trial with the same overrides, or a new one.

    Making it reserves it among jobs that run side by side. No directory is used twice.
    """
    root, own = Path(sweep), what_it_tries(overrides)
    for record in sorted(root.glob(f"[0-9]*/{NAME}")):
        if read(record.parent).get("status") == "finished" and what_it_tries(words_of(record.parent)) == own:
            return record.parent.name
    while True:
        try:
            (root / str(number)).mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return str(number)


def words_of(trial: Path) -> list[str]:
    """The overrides that a trial was composed from; empty where it did not come that far."""
    file = trial / ".hydra" / "overrides.yaml"
    return list(map(str, OmegaConf.load(file))) if file.exists() else []


def what_it_tries(words: Iterable[str]) -> frozenset[str]:
    """The overrides without those that are about the sweep as a whole, which may change when it goes on."""
    return frozenset(word for word in map(str, words) if not word.lstrip("+").startswith(ABOUT_THE_SWEEP))


def others_are_busy(sweep: Path) -> bool:
    """Whether a trial is being trained, here or on a machine that cannot be asked."""
    return any(is_running(read(record.parent)) is not False for record in sweep.glob(f"[0-9]*/{NAME}"))


def _let_the_command_line_win(config: DictConfig) -> None:
    """A parameter that the sweep varies and the command line sets would be given twice."""
    params = config.hydra.sweeper.get("params")
    for word in config.hydra.overrides.task:
        key = str(word).partition("=")[0].lstrip("+")
        if params and key in params:
            del params[key]


OmegaConf.register_new_resolver("trial_directory", trial_directory, use_cache=True, replace=True)
