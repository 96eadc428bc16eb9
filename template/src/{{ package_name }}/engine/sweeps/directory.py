"""The directory of a sweep: its record, a directory for each trial, and what a sweep that goes on does not repeat."""

import json
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, open_dict

from ..errors import UserError
from ..report.experiments import read_config
from ..run_record import NAME, is_running, locked, read
from .plan import check, is_search

RECORD = "sweep.json"
ENDED = "ended.txt"  # why no further trial of the sweep is worth starting
ASKED = ".trials"  # the directories of the trials that a command has asked for, a line each, until its end
ABOUT_THE_SWEEP = ("hydra", "sweep", "resume_sweep")  # parts of a config that may change when the sweep goes on
DIRECTIONS = {"min": "minimize", "max": "maximize"}


class Sweep(NamedTuple):
    """A sweep that this process has begun: its directory, and the config before a trial's overrides."""

    directory: Path
    config: DictConfig


started: list[Sweep] = []
locks = ExitStack()  # those of these directories


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
            check(config)
            direction(config)
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UserError(f"{directory} cannot be written: {error.strerror}") from error
            locks.enter_context(locked(directory))
            (directory / ENDED).unlink(missing_ok=True)
            if is_search(config):
                from . import study

                study.prepare(config)
            known = [run.name for run in runs(directory)] if is_search(config) else []  # a search goes on with all
            (directory / ASKED).write_text("".join(f"{name}\n" for name in known), encoding="utf-8")
        words = map(str, [*config.hydra.overrides.hydra, *config.hydra.overrides.task])
        kept = [word for word in words if not word.startswith(("hydra.sweep.dir=", "hydra.mode=", "resume_sweep="))]
        now = datetime.now().astimezone().isoformat(timespec="microseconds")
        facts = json.dumps({"started": now, "words": kept}, indent=2, ensure_ascii=False)
        (directory / RECORD).write_text(f"{facts}\n", encoding="utf-8")
        started.append(Sweep(directory, config))


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


def trial_directory(sweep: str, number: int, *, _root_: DictConfig) -> str:
    """The name of a trial's directory: that of the finished trial with the same config, or a new one."""
    return _directory(Path(sweep), number, what_it_tries(OmegaConf.to_container(_root_)))


@cache  # Hydra asks more than once
def _directory(sweep: Path, number: int, tries: str) -> str:
    same = (run for run in runs(sweep) if status(run) == "finished" and _what_it_tried(run) == tries)
    name = next((run.name for run in same), None) or new_directory(sweep, number)
    with (sweep / ASKED).open("a", encoding="utf-8") as file:
        file.write(f"{name}\n")
    return name


def new_directory(sweep: Path, number: int) -> str:
    """Makes a directory, which reserves it among jobs that run side by side. None is used twice."""
    while True:
        try:
            (sweep / str(number)).mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return str(number)


def runs(sweep: Path) -> list[Path]:
    """The directories of the sweep's trials whose config is there, by their numbers."""
    return sorted((file.parents[1] for file in sweep.glob("[0-9]*/.hydra/config.yaml")), key=lambda run: int(run.name))


def take_asked_for(sweep: Path) -> set[str]:
    """The names of the directories of the trials that the command has come to, for its end: their list is removed."""
    names = set((sweep / ASKED).read_text(encoding="utf-8").split())
    (sweep / ASKED).unlink()
    return names


def status(run: Path) -> str | None:
    """How a trial ended; None where its record is missing or damaged."""
    with suppress(UserError):
        return read(run).get("status")
    return None


def words_of(trial: Path) -> list[str]:
    """The overrides that a trial was composed from; empty where it did not come that far."""
    file = trial / ".hydra" / "overrides.yaml"
    return list(map(str, OmegaConf.load(file))) if file.exists() else []


def what_it_tries(config: Any) -> str:
    """A trial's config as text, without what is about the sweep as a whole."""
    own = {key: value for key, value in config.items() if key not in ABOUT_THE_SWEEP}
    return json.dumps(own, sort_keys=True, default=str)


@cache  # or each new trial of a sweep that goes on would read all finished ones again
def _what_it_tried(finished: Path) -> str:
    return what_it_tries(read_config(finished))


def others_are_busy(sweep: Path) -> bool:
    """Whether a trial is being trained, here or on a machine that cannot be asked."""
    records = (record.parent for record in sweep.glob(f"[0-9]*/{NAME}"))
    return any(is_running(read(run)) is not False for run in records if status(run))


def _let_the_command_line_win(config: DictConfig) -> None:
    """A parameter that the sweep varies and the command line sets would be given twice."""
    params = config.hydra.sweeper.get("params")
    for word in config.hydra.overrides.task:
        key = str(word).partition("=")[0].lstrip("+")
        if params and key in params:
            del params[key]


OmegaConf.register_new_resolver("trial_directory", trial_directory, replace=True)
