"""A monitored metric that nobody logs is found before training, not at the end of the first epoch."""

from collections.abc import Iterable

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from .errors import UserError
from .module import TrainingModule


class MonitorCheck(Callback):
    """Compares what callbacks and schedules monitor with what is logged, after the sanity check and every validation.

    Raises:
        UserError: names the metric together with what is logged.
    """

    def on_sanity_check_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        _refuse_unvalidated(trainer)
        self._check(trainer, pl_module, before_training=True)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        _refuse_unvalidated(trainer)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.sanity_checking:
            self._check(trainer, pl_module, before_training=False)

    def _check(self, trainer: Trainer, module: LightningModule, before_training: bool) -> None:
        logged = set(trainer.callback_metrics)
        if isinstance(module, TrainingModule):
            logged |= {f"train/{name}" for name in module.train_metrics.by_name}
        for metric in monitored(trainer):
            is_late = before_training and not metric.startswith("val/")
            if metric not in logged and not is_late:
                names = ", ".join(sorted(logged))
                raise UserError(f"model.monitor={metric} is not logged: choose one of {names}")


def monitored(trainer: Trainer) -> Iterable[str]:
    """The metrics that checkpoints, early stopping, other callbacks and plateau schedules look at."""
    for callback in trainer.callbacks:  # type: ignore[attr-defined]
        if monitor := getattr(callback, "monitor", None):
            yield monitor
    for config in trainer.lr_scheduler_configs:
        if config.reduce_on_plateau and config.monitor:
            yield config.monitor


def _refuse_unvalidated(trainer: Trainer) -> None:
    """Without a validation no metric of it exists: nothing would be the best, and nothing would stop early."""
    names = sorted({name for name in monitored(trainer) if name.startswith("val/")})
    every, epochs = trainer.check_val_every_n_epoch, trainer.max_epochs
    reason = None
    if not trainer.enable_validation:
        reason = f"trainer.limit_val_batches={trainer.limit_val_batches}"
    elif trainer.val_dataloaders is not None and not sum(trainer.num_val_batches):
        reason = "the validation loader has no batches"
    elif every and epochs and 0 < epochs < every:
        reason = f"trainer.check_val_every_n_epoch={every} is more than trainer.max_epochs={epochs}"
    if names and reason:
        raise UserError(
            f"{names[0]} is monitored, but nothing is validated ({reason}): validate, or type model.monitor=train/loss"
        )
