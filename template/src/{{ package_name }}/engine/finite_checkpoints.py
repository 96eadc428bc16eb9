"""Refuses checkpoints of what is not finite: a monitored metric, or weights."""

import math

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from lightning.pytorch.trainer.states import TrainerFn

from .nonfinite import probe
from .nonfinite_report import fail, first_validation_module, first_weight, place


class FiniteCheckpoints(Callback):
    """Ends the run before a metric that is NaN or infinite makes a checkpoint the best, or one gets such weights.

    Lightning would keep the checkpoint of a NaN as the best one, and end with exit code 0.
    """

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking:
            self._check(trainer, pl_module, "val/")

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._check(trainer, pl_module, "train/")

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, object]) -> None:
        if not math.isfinite(probe(weight.detach() for weight in pl_module.parameters() if weight.requires_grad)):
            fail({"what": "a weight", **place(trainer), "parameter": first_weight(pl_module)})

    def _check(self, trainer: Trainer, module: LightningModule, stage: str) -> None:
        callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]
        watching = [part for part in callbacks if isinstance(part, (EarlyStopping, ModelCheckpoint))]
        for name in sorted({str(part.monitor) for part in [module, *watching] if getattr(part, "monitor", None)}):
            value = trainer.callback_metrics.get(name)
            if value is None or math.isfinite(value):
                continue
            found = first_validation_module(module) if stage == "val/" else {}
            fail({"what": name, **place(trainer), **found, "parameter": first_weight(module)})
