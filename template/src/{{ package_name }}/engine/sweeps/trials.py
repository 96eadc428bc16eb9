"""One trial of a sweep: it fails alone, and its score is the best value of the sweep's metric."""

import math
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, open_dict

from .. import ranks, run_record
from ..errors import JobFailed, UserError
from ..one_line_errors import one_line
from . import directory, gpus
from .scores import score


def run_trial(config: DictConfig, launch: Callable[[DictConfig], dict[str, float]]) -> float | None:
    """Launches the job; in a sweep, a trial that finished before gives its score at once, and one that fails is noted.

    Returns NaN for a trial that failed, except to Optuna, which wants an exception and marks the trial as failed.
    """
    if HydraConfig.get().mode is not RunMode.MULTIRUN:
        return launch(config).get("best_score")
    hydra = HydraConfig.get()
    run, sweep = Path(hydra.runtime.output_dir), Path(hydra.sweep.dir)
    metric, which = config.sweep.metric, directory.direction(config)
    if directory.status(run) == "finished" and (known := score(run, metric, which)) is not None:
        sys.stdout.write(f"trial {run.name} has finished before\n")
        return known
    if (ended := sweep / directory.ENDED).exists():
        raise UserError(ended.read_text(encoding="utf-8").strip())
    try:
        with open_dict(config), gpus.one_of_its_own(config, sweep):
            if metric is not None:
                target = f"{__package__}.objective.Objective"
                config.callbacks.objective = {"_target_": target, "metric": metric, "sweep": str(sweep)}
            launch(config)
        if (reached := score(run, metric, which)) is None:
            raise UserError(f"the trial measured no {metric or 'monitored metric'} that could be compared")
    except Exception as error:
        _note(run, error)
        if ranks.find_place() is not None or "study_name" in hydra.sweeper:
            raise
        return math.nan
    return reached


def _note(run: Path, error: Exception) -> None:
    """Leaves the failure in the trial's directory, and one line of it on the console."""
    reason = one_line(error) or (error.reason if isinstance(error, JobFailed) else f"{type(error).__name__}: {error}")
    if run_record.read(run).get("status") in (None, "running", "finished"):
        run_record.mark(run, UserError(reason) if isinstance(error, UserError) else error)
    if not isinstance(error, JobFailed):  # its own process has written it
        with (run / "train.log").open("a", encoding="utf-8") as file:
            file.write("".join(traceback.format_exception(error)))
    if not (run.parent / directory.ENDED).exists():
        os.write(2, f"trial {run.name} failed: {reason}\n".encode())
