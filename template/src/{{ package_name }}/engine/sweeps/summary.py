"""The end of a sweep: which trials failed and why, the best one and its command, and the exit code."""

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf

from .. import run_record
from ..config_folder import SCRIPT
from ..errors import JobFailed, UserError
from ..path_options import short
from ..run_folders import options_of
from . import directory
from .scores import score


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
        try:
            main()
        except directory.SweepRefused as refused:
            raise refused.error from None
        except Exception:
            if not any(trial.reason for trial in _trials()):
                raise  # the sweep itself failed
        except BaseException:
            if directory.started:
                sys.stderr.write(f"go on with the sweep: {_resume_command()}\n")
            raise
        _summarise()

    return run


def _summarise() -> None:
    if not directory.started or not (trials := _trials()):
        return
    if (ended := directory.started[-1] / directory.ENDED).exists():
        raise UserError(ended.read_text(encoding="utf-8").strip())
    config = _newest_config()
    done = [trial for trial in trials if trial.score is not None]
    shared = set.intersection(*(set(trial.words) for trial in trials)) if len(trials) > 1 else set()
    lines = [f"sweep      {short(directory.started[-1])}", f"trials     {len(trials)}, {len(done)} of them succeeded"]
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
    asked = config.sweep.min_success
    if len(done) < (len(trials) if asked is None else asked):
        raise JobFailed(f"{len(trials) - len(done)} of {len(trials)} trials failed")


def _newest_config() -> DictConfig:
    """What the latest command says of the sweep and of the monitored metric: trials of earlier ones may differ."""
    files = directory.started[-1].glob("[0-9]*/.hydra/config.yaml")
    config: Any = OmegaConf.load(max(files, key=lambda file: file.stat().st_mtime))
    monitored = {key: config.model.get(key) for key in ("monitor", "mode")}
    return OmegaConf.create({"sweep": config.sweep, "model": monitored})


def _trials() -> list[Trial]:
    """The trials of the sweep; of those that tried the same, the one that succeeded or else the last."""
    if not directory.started:
        return []
    found: dict[frozenset[str], Trial] = {}
    runs = [file.parent.parent for file in directory.started[-1].glob("[0-9]*/.hydra/config.yaml")]
    config = _newest_config() if runs else None
    for run in sorted(runs, key=lambda run: int(run.name)):
        trial = _trial(run, config)
        key = directory.what_it_tries(trial.words)
        if key not in found or found[key].score is None:
            found[key] = trial
    return list(found.values())


def _trial(run: Path, config: Any) -> Trial:
    record, words = run_record.read(run), directory.words_of(run)
    if record.get("status") == "finished":
        reached = score(run, config.sweep.metric, directory.direction(config))
        if reached is not None:
            return Trial(run, words, reached, None)
    reason = str(record.get("error") or record.get("status") or "it did not begin")
    return Trial(run, words, None, reason.removeprefix(f"{UserError.__name__}: ").partition("\n")[0])


def command(trial: Trial) -> str:
    """What to type for a run like this trial: with its seed, also where chance chose it, and its number of threads."""
    words = [word for word in options_of(trial.run) if not word.lstrip("+").startswith(("launcher=", "resume_sweep="))]
    record = run_record.read(trial.run)
    if not any(word.startswith("seeding.seed=") for word in words):
        words.append(f"seeding.seed={record['seed']}")
    threads = record.get("threads")
    few = f"OMP_NUM_THREADS={threads} " if threads and threads != _own_threads() else ""
    return f"{few}{SCRIPT} train {shlex.join(words)}"


def _own_threads() -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() else len(os.sched_getaffinity(0))


def _resume_command() -> str:
    return f"{SCRIPT} train -m resume_sweep={shlex.quote(short(directory.started[-1]))}"
