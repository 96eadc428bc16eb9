"""When `ReduceLROnPlateau` looks at its metric."""

from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from .errors import UserError
from .lightning_private import epoch_is_over

NEVER = 10**9  # epochs


class StepPlateau(Callback):
    """Steps plateau schedules as soon as an epoch's metric is there, before the epoch's checkpoints are written.

    Lightning does it after them: a run that goes on from such a checkpoint would have missed a step.
    """

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.schedules: list[tuple[Any, int]] = []
        for config in trainer.lr_scheduler_configs:
            if config.reduce_on_plateau:
                _refuse_idle_looks(config, trainer.check_val_every_n_epoch)
                self.schedules.append((config, config.frequency))
                config.frequency = NEVER

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.sanity_checking and epoch_is_over(trainer):
            self._step(trainer, pl_module, of_training=False)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._step(trainer, pl_module, of_training=True)

    def _step(self, trainer: Trainer, module: LightningModule, of_training: bool) -> None:
        for config, every in self.schedules:
            is_due = (trainer.current_epoch + 1) % every == 0
            metric = trainer.callback_metrics.get(config.monitor)
            if is_due and metric is not None and config.monitor.startswith("train/") == of_training:
                module.lr_scheduler_step(config.scheduler, metric)


def _refuse_idle_looks(config: Any, every: int | None) -> None:
    """Patience would count looks at a metric that has not changed, or miss validations."""
    if (config.monitor or "").startswith("val/") and every and config.frequency % every:
        raise UserError(
            f"scheduler.frequency={config.frequency}: the plateau schedule would look at {config.monitor} between "
            f"validations, which run every trainer.check_val_every_n_epoch={every} epochs: "
            f"type scheduler.frequency={-(-config.frequency // every) * every}"
        )
