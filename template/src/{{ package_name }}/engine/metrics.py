"""Metrics that cost one update a step and one reduction an epoch."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from .module import TrainingModule


class StageMetrics(Callback):
    """Logs what a `TrainingModule` measured: each metric once an epoch, the training loss every `log_every_n_steps`."""

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]
        if trainer.global_step % every == 0 and isinstance(outputs, dict):
            pl_module.log("train/loss_step", outputs["loss"], on_step=True, on_epoch=False, prog_bar=True)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._log("train", pl_module)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._log("val", pl_module)

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._log("test", pl_module)

    def _log(self, stage: str, module: LightningModule) -> None:
        if not isinstance(module, TrainingModule):
            return
        for name, metric in module.metrics_of(stage).items():
            if metric.update_called:
                module.log(f"{stage}/{name}", metric, on_step=False, on_epoch=True, prog_bar=stage != "test")
