"""The end of a sweep: which trials failed and why, the best one and its command, and the exit code."""

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

from omegaconf import DictConfig

from .. import run_record
from ..config_folder import SCRIPT
from ..errors import JobFailed, UserError
from ..path_options import short
from ..report.experiments import read_config
from ..run_folders import options_of
from . import directory
from .scores import score

NONE_COMPLETED = "No trials are completed yet"  # what Optuna says where every trial failed


class Trial(NamedTuple):
    """One trial of a sweep; `score` is None where it failed, `reason` is None where it did not."""

    run: Path
    words: list[str]
    score: float | None
    reason: str | None


def summarised(main: Callable[[], Any]) -> Callable[[], None]:
    """Runs a sweep, lists what failed and shows the best trial.

    Raises:
        JobFailed: fewer trials succeeded than `sweep.min_success` asks for.
        UserError: the sweep ended early, because no trial could have been compared.
    """

    def run() -> None:
        error: Exception | None = None
        with directory.locks:
            try:
                main()
            except directory.SweepRefused as refused:
                raise refused.error from None
            except Exception as found:
                error = found  # of the sweep itself, which trials that failed must not hide
            except BaseException:
                if directory.started:
                    sys.stderr.write(f"go on with the sweep: {_resume_command()}\n")
                raise
            _summarise(error)

    return run


def _summarise(error: Exception | None) -> None:
    if not directory.started:
        if error is not None:
            raise error
        return
    sweep, config = directory.started[-1]
    if (ended := sweep / directory.ENDED).exists():
        raise UserError(ended.read_text(encoding="utf-8").strip())
    trials = _trials(sweep, config)
    done = [trial for trial in trials if trial.score is not None]
    if trials:
        _show(trials, done, config)
    if error is not None and (done or not str(error).startswith(NONE_COMPLETED)):
        if (refusal := _refusal(error)) is not None:
            raise refusal from error
        raise error
    asked = config.sweep.min_success
    if len(done) < (len(trials) if asked is None else asked):
        raise JobFailed(f"{len(trials) - len(done)} of {len(trials)} trials failed")


def _refusal(error: Exception) -> UserError | None:
    if "optuna" not in sys.modules:
        return None
    from . import study

    return study.refusal(error, _here())


def _show(trials: list[Trial], done: list[Trial], config: DictConfig) -> None:
    shared = set.intersection(*(set(trial.words) for trial in trials)) if len(trials) > 1 else set()
    lines = [f"sweep      {_here()}", f"trials     {len(trials)}, {len(done)} of them succeeded"]
    for trial in trials:
        if trial.reason:
            own = shlex.join(word for word in trial.words if word not in shared)
            lines.append(f"  {trial.run.name}  {own}: {trial.reason}")
    if done:
        which = directory.direction(config)
        best = (min if which == "minimize" else max)(done, key=lambda trial: trial.score or 0.0)
        lines += [f"best       {best.score:.6g} in {short(best.run)}", f"           {command(best)}"]
    if len(done) < len(trials):
        lines.append(f"go on      {_resume_command()}")
    sys.stdout.write("\n" + "\n".join(lines) + "\n")


def _trials(sweep: Path, config: DictConfig) -> list[Trial]:
    """What the latest command came to; of trials of the same, the one that succeeded, or else the last."""
    found: dict[str, Trial] = {}
    asked = directory.take_asked_for(sweep)
    for run in (run for run in directory.runs(sweep) if run.name in asked):
        trial, key = _trial(run, config), directory.what_it_tries(read_config(run))
        if key not in found or found[key].score is None:
            found[key] = trial
    return list(found.values())


def _trial(run: Path, config: DictConfig) -> Trial:
    words = directory.words_of(run)
    try:
        record = run_record.read(run)
    except UserError:
        return Trial(run, words, None, f"its {run_record.NAME} is damaged")
    if record.get("status") == "finished":
        reached = score(run, config.sweep.metric, directory.direction(config))
        if reached is not None:
            return Trial(run, words, reached, None)
    reason = str(record.get("error") or record.get("status") or "it did not begin").removeprefix("UserError: ")
    return Trial(run, words, None, shorten(reason, 300, placeholder=" …"))


def command(trial: Trial) -> str:
    """What to type for a run like this trial: with its seed, also where chance chose it, and its number of threads."""
    left_out = ("launcher=", "resume_sweep=", "seeding.seed=")
    words = [word for word in options_of(trial.run) if not word.lstrip("+").startswith(left_out)]
    record = run_record.read(trial.run)
    words.append(f"seeding.seed={record['seed']}")
    threads = record.get("threads")
    few = f"OMP_NUM_THREADS={threads} " if threads and threads != _own_threads() else ""
    return f"{few}{SCRIPT} train {shlex.join(words)}"


def _own_threads() -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() else len(os.sched_getaffinity(0))


def _here() -> str:
    return short(directory.started[-1].directory)


def _resume_command() -> str:
    return f"{SCRIPT} train -m resume_sweep={shlex.quote(_here())}"
