"""What `run.json` says of a run that is not finished: how far it came and the best score so far."""

from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint, ModelCheckpoint

from .run_record import RunRecord


class RecordProgress(Checkpoint):
    """Writes the record after every epoch.

    Lightning calls what is a `Checkpoint` after all other callbacks, in their order: as the last one it finds the
    epoch's checkpoints on the disk.
    """

    def __init__(self, record: RunRecord) -> None:
        self.record = record

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        facts: dict[str, Any] = {"epochs": trainer.current_epoch + 1, "steps": trainer.global_step}
        if best := best_checkpoint(trainer):
            facts |= best_facts(best)
        self.record.update(**facts)


def best_checkpoint(trainer: Trainer) -> ModelCheckpoint | None:
    """The callback that keeps the best checkpoint, once there is one."""
    for callback in trainer.checkpoint_callbacks:
        if isinstance(callback, ModelCheckpoint) and callback.monitor and callback.best_model_path:
            return callback
    return None


def best_facts(best: ModelCheckpoint) -> dict[str, Any]:
    """The monitored metric, its best value, and the file of it in the run directory."""
    return {
        "monitor": best.monitor,
        "best_score": float(best.best_model_score),  # type: ignore[arg-type]
        "best_checkpoint": f"checkpoints/{Path(best.best_model_path).name}",
    }
