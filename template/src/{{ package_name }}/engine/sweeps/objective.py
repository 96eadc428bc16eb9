"""A metric that trials are to be compared by and that nobody logs ends the sweep, not every trial of it."""

from pathlib import Path

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from ..errors import UserError
from .directory import ENDED


class Objective(Callback):
    """Ends the sweep as soon as a trial has validated without measuring `metric`.

    Raises:
        UserError: names the metric together with what is logged.
    """

    def __init__(self, metric: str, sweep: str) -> None:
        self.metric, self.sweep = metric, Path(sweep)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        is_known = self.metric in trainer.callback_metrics
        if is_known or (trainer.sanity_checking and not self.metric.startswith("val/")):
            return
        if self.metric.startswith("train/") and not trainer.current_epoch:
            return  # measured when the epoch ends, after its validation
        names = ", ".join(sorted(trainer.callback_metrics))
        message = f"sweep.metric={self.metric} is not logged: choose one of {names}"
        if trainer.is_global_zero:
            (self.sweep / ENDED).write_text(f"{message}\n", encoding="utf-8")
        raise UserError(message)
