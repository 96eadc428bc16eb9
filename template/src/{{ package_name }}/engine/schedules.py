"""Learning-rate schedules whose horizon comes from the trainer.

Each function gives the dictionary that `LightningModule.configure_optimizers` returns under `lr_scheduler`. `interval`
is `step` (one optimizer step, after accumulation) or `epoch`; lengths are counted in that unit. `warmup` is a share of
the horizon (a float below 1) or a number of units (an integer): the learning rate climbs in equal steps from
peak / (warmup + 1) and reaches its peak right after the warmup.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from lightning.pytorch import Trainer
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, OneCycleLR, ReduceLROnPlateau

from .errors import UserError

Interval = Literal["step", "epoch"]


@dataclass(frozen=True)
class Horizon:
    """How long a training lasts after its step `begins`, asked for only by schedules that need it.

    Attributes:
        answers: What it answered: the number of units for each interval that was asked about.
    """

    trainer: Trainer
    monitor: str = "val/loss"
    mode: Literal["min", "max"] = "min"
    begins: int = 0
    answers: dict[str, int] = field(default_factory=dict)

    def __call__(self, interval: Interval, schedule: str) -> int:
        """The number of optimizer steps or epochs.

        Raises:
            UserError: the training has no batches, no end that is known before it starts, or has come to its end.
        """
        steps = self.trainer.estimated_stepping_batches
        if not self.trainer.num_training_batches:
            raise UserError("there are no training batches: look at the training set and at train_dataloader")
        if not 0 < steps < math.inf:
            raise UserError(
                f"scheduler={schedule} needs a finite horizon: set trainer.max_epochs or trainer.max_steps "
                f"(got max_epochs={self.trainer.max_epochs}, max_steps={self.trainer.max_steps})"
            )
        if steps <= self.begins:
            raise UserError(f"resume_schedule=restart: all {steps} steps are done, set a larger trainer.max_epochs")
        units = int(steps - self.begins)
        if interval == "epoch":
            if self.trainer.num_training_batches == math.inf:
                raise UserError(
                    f"scheduler={schedule} counts epochs, and nobody knows how many batches one has: type "
                    "++trainer.limit_train_batches=1000 for so many, or scheduler.interval=step"
                )
            epoch = math.ceil(self.trainer.num_training_batches / self.trainer.accumulate_grad_batches)
            units = math.ceil(units / epoch)
        self.answers[interval] = units
        return units


class ScheduleFactory(Protocol):
    """Makes the dictionary that Lightning expects under `lr_scheduler`, from an optimizer and the horizon."""

    def __call__(self, optimizer: Optimizer, /, *, horizon: Horizon) -> Any: ...


def make_schedule(factory: Any, optimizer: Optimizer, horizon: Horizon) -> dict[str, Any]:
    """Calls a function of this file, or a scheduler of torch, which knows no horizon and is stepped once an epoch."""
    try:
        schedule = factory(optimizer, horizon=horizon)
    except TypeError as error:
        if "'horizon'" not in str(error):
            raise
        schedule = factory(optimizer)
    if isinstance(schedule, LRScheduler):
        return {"scheduler": schedule, "interval": "epoch", "monitor": horizon.monitor, "name": "lr"}
    return dict(schedule)


def constant(
    optimizer: Optimizer, horizon: Horizon, *, warmup: float = 0, interval: Interval = "step"
) -> dict[str, Any]:
    """The peak learning rate after the warmup, to the end."""
    return _scaled(optimizer, horizon, lambda position: 1.0, "constant", warmup, interval)


def step(
    optimizer: Optimizer,
    horizon: Horizon,
    *,
    milestones: Sequence[float] = (0.5, 0.75),
    gamma: float = 0.1,
    warmup: float = 0,
    interval: Interval = "epoch",
) -> dict[str, Any]:
    """Multiplies the learning rate by `gamma` at each milestone, a share of the horizon or a number of units."""
    ends = [_units(milestone, horizon, "step", interval, "milestones") for milestone in milestones]
    return _scaled(
        optimizer, horizon, lambda position: gamma ** sum(position >= end for end in ends), "step", warmup, interval
    )


def cosine(
    optimizer: Optimizer, horizon: Horizon, *, warmup: float = 0, final_ratio: float = 0.01, interval: Interval = "step"
) -> dict[str, Any]:
    """Half a cosine from the peak to `final_ratio` of it, reached at the last unit (Loshchilov and Hutter 2017)."""
    total = horizon(interval, "cosine")
    start = _length(warmup, horizon, "cosine", interval, "warmup")

    def ratio(position: int) -> float:
        progress = min(1.0, (position - start) / max(1, total - 1 - start))
        return final_ratio + (1 - final_ratio) * 0.5 * (1 + math.cos(math.pi * progress))

    return _scaled(optimizer, horizon, ratio, "cosine", warmup, interval)


def onecycle(
    optimizer: Optimizer,
    horizon: Horizon,
    *,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
    cycle_momentum: bool = False,
    interval: Interval = "step",
) -> dict[str, Any]:
    """torch's `OneCycleLR` with the optimizer's own learning rates as peaks (Smith and Topin 2018)."""
    scheduler = OneCycleLR(
        optimizer,
        max_lr=[group["lr"] for group in optimizer.param_groups],
        total_steps=horizon(interval, "onecycle"),
        pct_start=pct_start,
        div_factor=div_factor,
        final_div_factor=final_div_factor,
        cycle_momentum=cycle_momentum,
    )
    return {"scheduler": scheduler, "interval": interval, "name": "lr"}


def plateau(
    optimizer: Optimizer,
    horizon: Horizon,
    *,
    factor: float = 0.5,
    patience: int = 5,
    threshold: float = 1e-4,
    min_lr: float = 0.0,
    frequency: int = 1,
) -> dict[str, Any]:
    """torch's `ReduceLROnPlateau` on the monitored metric, looked at after every `frequency` epochs."""
    for key, value, least in (("patience", patience, 0), ("frequency", frequency, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UserError(f"scheduler.{key} must be a whole number of epochs from {least} (got {value!r})")
    scheduler = ReduceLROnPlateau(
        optimizer, mode=horizon.mode, factor=factor, patience=patience, threshold=threshold, min_lr=min_lr
    )
    return {
        "scheduler": scheduler,
        "interval": "epoch",
        "frequency": frequency,
        "monitor": horizon.monitor,
        "name": "lr",
    }


def _scaled(
    optimizer: Optimizer,
    horizon: Horizon,
    ratio: Callable[[int], float],
    schedule: str,
    warmup: float,
    interval: Interval,
) -> dict[str, Any]:
    """A schedule that multiplies every group's learning rate by the warmup and then by `ratio(position)`."""
    length = _length(warmup, horizon, schedule, interval, "warmup")
    scheduler = LambdaLR(
        optimizer, lambda position: (position + 1) / (length + 1) if position < length else ratio(position)
    )
    return {"scheduler": scheduler, "interval": interval, "name": "lr"}


def _length(value: float, horizon: Horizon, schedule: str, interval: Interval, key: str) -> int:
    """As `_units`, for a stretch that must end before the training does."""
    length = _units(value, horizon, schedule, interval, key)
    if length and length >= (total := horizon(interval, schedule)):
        raise UserError(
            f"scheduler.{key}={value} is {length} {interval}s, but the training has {total}: shorten it or train longer"
        )
    return length


def _units(value: float, horizon: Horizon, schedule: str, interval: Interval, key: str) -> int:
    """A share of the horizon or a number of units, as a number of units."""
    if interval not in ("step", "epoch"):
        raise UserError(f"scheduler.interval is step or epoch (got {interval!r})")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise UserError(f"scheduler.{key} is a share below 1 or a whole number of {interval}s (got {value!r})")
    if isinstance(value, int):
        return value
    if value >= 1:
        raise UserError(
            f"scheduler.{key}={value} is no share of the training: type a share below 1 or, without the point, "
            f"a number of {interval}s"
        )
    return round(value * horizon(interval, schedule)) if value else 0
