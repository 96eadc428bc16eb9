"""What a run reached in each epoch, kept in `metrics.csv` whatever logger is used."""

import math
import time
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, Checkpoint

from .checkpoints import LastCheckpoint
from .data_wait import DataWait
from .gradient_norm import GradientNorm
from .history_file import HistoryFile
from .resume import training_position


class History(Checkpoint):
    """Writes what an epoch reached: its number from 1, the step, seconds since the run began, and every logged metric.

    `lr` is the learning rate that the epoch began with, `grad_norm` the mean of the measured norms, `data_wait` the
    share of the training's time in which no batch was ready, and `samples_per_second` those of all devices in that
    time. An epoch without a validation has no value of one.

    Lightning calls what is a `Checkpoint` when nothing more can be logged for the epoch. Metrics are read on every
    rank, because reading one may reduce it; rank 0 writes.

    Args:
        directory: The run directory.
        began: When the run began, on the monotonic clock; earlier parts of a resumed run count.
    """

    def __init__(self, directory: Path, began: float) -> None:
        self.directory = directory
        self.began = began
        self.lr = math.nan
        self.validated = False

    def state_dict(self) -> dict[str, Any]:
        return {"lr": self.lr}  # a run that goes on in the middle of an epoch does not see its start

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.lr = state_dict["lr"]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.file = HistoryFile(self.directory, epochs=training_position(trainer)[0])

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.lr = float(trainer.optimizers[0].param_groups[0]["lr"]) if trainer.optimizers else math.nan
        self.validated = False

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.validated = not trainer.sanity_checking

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        row: dict[str, Any] = {
            "epoch": trainer.current_epoch + 1,
            "step": trainer.global_step,
            "seconds": round(time.monotonic() - self.began, 3),
            "lr": self.lr,
        }
        for callback in trainer.callbacks:  # type: ignore[attr-defined]
            if isinstance(callback, DataWait):
                row["data_wait"] = round(callback.share, 4)
                if (speed := callback.samples_per_second(trainer)) is not None:
                    row["samples_per_second"] = round(speed, 1)
            elif isinstance(callback, GradientNorm):
                row["grad_norm"] = float(callback.mean)
        for name, value in trainer.callback_metrics.items():
            if self.validated or not name.startswith("val/"):
                row.setdefault(name, float(value))
        if trainer.is_global_zero:
            self.file.add(row)


def keep_history(trainer: Trainer, directory: Path, began: float) -> list[Callback]:
    """Adds the callbacks that write the history; returns them.

    The row is written before the checkpoint that a run goes on from: a run that is killed in between repeats the epoch,
    and its row takes the place of the other one.
    """
    callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]
    place = next((i for i, callback in enumerate(callbacks) if isinstance(callback, LastCheckpoint)), len(callbacks))
    added: list[Callback] = [History(directory, began), DataWait()]
    callbacks.insert(place, added[0])
    callbacks.append(added[1])
    return added
