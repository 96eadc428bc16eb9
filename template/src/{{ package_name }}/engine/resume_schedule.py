"""A run that goes on with other options: what its checkpoint undoes, and what becomes of the schedule."""

import logging
import warnings
from pathlib import Path
from typing import Any, cast

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torch.optim.lr_scheduler import LRScheduler

from .config import Config, flat
from .errors import UserError
from .lightning_private import LENGTHS_IN_STATE
from .module import TrainingModule
from .runs import CONFIG_KEY, load_checkpoint
from .schedules import Horizon

# Those of `engine.schedules` are functions of the position, which no checkpoint stores: changed options take effect.
FUNCTIONS = ("engine.schedules.constant", "engine.schedules.step", "engine.schedules.cosine")
STATES = {"callbacks", "global_step", "lr_schedulers", "optimizer_states"}  # what a run needs to go on
NEVER_STORED = ("interval", "frequency")  # by a schedule: Lightning reads them anew

log = logging.getLogger(__name__)


class ResumedSchedule(Callback):
    """Stretches the schedule of a run that goes on longer, or begins it anew over the steps that are left.

    Where it was not told to, a training that became longer is refused if its schedule asked for the length.

    Args:
        how: `stretch`, `restart`, or None where the schedule goes on as it was.
        begins: The optimizer step at which the schedule began; a restarted one keeps it through later resumes.
        resumes_at: The optimizer step of the checkpoint; 0 where the run begins.

    Raises:
        UserError: before the first step, with both lengths.
    """

    def __init__(self, how: str | None = None, begins: int = 0, resumes_at: int = 0) -> None:
        self.how, self.begins, self.resumes_at = how, begins, resumes_at
        self.before: dict[str, int] = {}
        self.horizon: dict[str, int] = {}

    def state_dict(self) -> dict[str, Any]:
        return {"begins": self.begins, "horizon": self.horizon}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.before = state_dict["horizon"]

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        cast(TrainingModule, pl_module).schedule_begins = self.begins

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        if self.how == "restart":
            del checkpoint["lr_schedulers"][:]
        if self.how == "stretch":
            lengths_left_out = [_without(state, LENGTHS_IN_STATE) for state in checkpoint["lr_schedulers"]]
            checkpoint["lr_schedulers"] = lengths_left_out

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Comes between the making of the optimizers and the loading of their states."""
        self.fresh = [
            [_without(group, ("params",)) for group in optimizer.param_groups] for optimizer in trainer.optimizers
        ]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        horizon = getattr(pl_module, "horizon", None)
        answers = horizon.answers if isinstance(horizon, Horizon) else {}
        if self.how is None:
            _refuse_longer(self.before, answers)
        self.horizon = answers
        if self.how == "restart":
            for optimizer, fresh in zip(trainer.optimizers, self.fresh, strict=True):
                for group, options in zip(optimizer.param_groups, fresh, strict=True):
                    group.update(options)
        if self.how == "stretch":
            for config in trainer.lr_scheduler_configs:
                if isinstance(config.scheduler, LRScheduler):
                    _set_rates(config.scheduler)


def resumed_schedule(config: Config, checkpoint: Path | None) -> ResumedSchedule:
    """Compares the config with the one that the checkpoint stores; the log lists what the checkpoint undoes.

    The config gets those values back: what a run stores of itself is what it was trained with.

    Raises:
        UserError: another optimizer or schedule cannot go on from the states of this one.
    """
    if checkpoint is None:
        return ResumedSchedule()
    stored = load_checkpoint(checkpoint, mmap=True)
    if not stored.keys() >= STATES:
        raise UserError(f"{checkpoint} holds no training that could go on: init_from={checkpoint} takes its weights")
    before: Config = stored[CONFIG_KEY]
    begins = stored["callbacks"].get(ResumedSchedule.__name__, {"begins": 0})["begins"]
    how = config["resume_schedule"]
    if how == before.get("resume_schedule") and all(before[part] == config[part] for part in ("trainer", "data")):
        how = None  # a job that is repeated has done so already
    _refuse_others(before, config, how)
    if undone := _bring_back(before, config, how):
        log.warning(
            "the checkpoint brings its own values of these options back (init_from=%s begins a new run with yours): %s",
            checkpoint,
            "; ".join(undone),
        )
    step = stored["global_step"]
    return ResumedSchedule(how, step if how == "restart" else begins, step)


def _refuse_longer(before: dict[str, int], now: dict[str, int]) -> None:
    for interval, old in before.items():
        if (new := now.get(interval, 0)) > old:
            raise UserError(
                f"the schedule was made for {old} {interval}s and the training now lasts {new}: type "
                "resume_schedule=stretch to keep its place in a longer one, or restart to begin it anew over the rest"
            )


def _refuse_others(before: Config, config: Config, how: str | None) -> None:
    for part, is_refused, cure in (
        ("optimizer", True, "init_from= begins a new run with its weights"),
        ("scheduler", how != "restart", "resume_schedule=restart begins it, over the steps that are left"),
    ):
        old, new = (_part(each, part).get("_target_") for each in (before, config))
        if old != new and is_refused:
            raise UserError(f"a run that was trained with {part} {old} cannot go on with {new}: {cure}")


def _bring_back(before: Config, config: Config, how: str | None) -> list[str]:
    """Puts the options back that come from the checkpoint: the optimizer's, those of most schedules, the patience."""
    parts = [] if how == "restart" else ["optimizer", "optimizer_scaling"]
    if how is None and not _target(config).endswith(FUNCTIONS):
        parts.append("scheduler")
    changes: list[str] = []
    for part in parts:
        old, new = flat(_part(before, part)), flat(_part(config, part))
        changes += [
            f"{part}.{key} {old.get(key)} instead of {new.get(key)}"
            for key in {**old, **new}
            if key not in NEVER_STORED and old.get(key) != new.get(key)
        ]
        for home, stored in ((config, before), (config["model"], before["model"])):
            if home.get(part) and stored.get(part):
                kept = {key: value for key, value in home[part].items() if key in NEVER_STORED}
                home[part] = {**_without(stored[part], NEVER_STORED), **kept}
    patiences = [(each["callbacks"].get("early_stopping") or {}).get("patience") for each in (before, config)]
    if None not in patiences and patiences[0] != patiences[1]:
        changes.append(f"callbacks.early_stopping.patience {patiences[0]} instead of {patiences[1]}")
        config["callbacks"]["early_stopping"]["patience"] = patiences[0]
    return changes


def _target(config: Config) -> str:
    return str(_part(config, "scheduler").get("_target_"))


def _part(config: Config, name: str) -> dict[str, Any]:
    """As the model gets it, for the options of the model."""
    return config["model"].get(name, config.get(name)) or {}


def _set_rates(scheduler: LRScheduler) -> None:
    """The learning rates of the schedule's position now; it would set them after the next step only."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # torch would rather be asked inside `step`
        rates = scheduler.get_lr()
    for group, rate in zip(scheduler.optimizer.param_groups, rates, strict=True):
        group["lr"] = rate


def _without(values: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in keys}
