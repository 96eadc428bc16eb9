"""What a command is about to try, checked before anything is written."""

import math
import shutil
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, IntervalSweep
from omegaconf import DictConfig

from ..errors import UserError


def is_search(config: DictConfig) -> bool:
    """Whether Optuna proposes the trials; they are a grid otherwise."""
    return "study_name" in config.hydra.sweeper


def check(config: DictConfig) -> None:
    """Refuses what no trial could come of.

    Raises:
        UserError: says which setting, and what to type.
    """
    launcher, asked = config.hydra.launcher, config.sweep.min_success
    if str(launcher._target_).endswith(".SlurmLauncher") and shutil.which("srun") is None:
        raise UserError(
            "launcher=submitit_slurm needs SLURM, and this machine has no srun: "
            "start it on a login node, or try it out with launcher=submitit_local"
        )
    if launcher.get("n_jobs") == 0:
        raise UserError("hydra.launcher.n_jobs must be the number of trials at once, or -1 for one a core (got 0)")
    is_grid = str(config.hydra.sweeper._target_).endswith(".BasicSweeper")
    count = _searched(config) if is_search(config) else _gridded(config) if is_grid else math.inf
    if asked is not None and (type(asked) is not int or not 0 <= asked <= count):
        most = "" if math.isinf(count) else f" to {count}, the number of trials,"
        raise UserError(f"sweep.min_success must be a number from 0{most} or null for all of them (got {asked})")


def _searched(config: DictConfig) -> int:
    count: int = config.hydra.sweeper.n_trials
    if count < 1:
        raise UserError(f"hydra.sweeper.n_trials must be at least 1 (got {count})")
    for word in config.hydra.overrides.hydra:
        if str(word).lstrip("+").startswith("hydra.sweeper.direction="):
            value = str(word).partition("=")[2]
            raise UserError(f"hydra.sweeper.direction follows from the sweep: type sweep.direction={value}")
    return count


def _gridded(config: DictConfig) -> float:
    """The number of trials of a grid; infinite where a pattern stands for options that only Hydra can list."""
    params: Any = config.hydra.sweeper.get("params") or {}
    words = [*(f"{key}={value}" for key, value in params.items()), *map(str, config.hydra.overrides.task)]
    count = 1.0
    for override in OverridesParser.create().parse_overrides(words):
        word, value = str(override.input_line), override.value()
        if not override.is_sweep_override():
            continue
        if isinstance(value, IntervalSweep):
            raise UserError(f"{word} is for a search, not for a grid: add sweep=optuna, or name the values")
        number = math.inf if isinstance(value, Glob) else sum(1 for _ in override.sweep_string_iterator())
        if not number:
            raise UserError(f"{word} names no value, so there is nothing to train")
        count *= number
    return count if math.isinf(count) else int(count)
