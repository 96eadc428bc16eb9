"""How checkpoints are written, and what they hold beside Lightning's own."""

import os
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.plugins.io import TorchCheckpointIO
from lightning.pytorch.utilities.exceptions import SIGTERMException

from .config import Config
from .errors import RunFailed
from .lightning_private import epoch_is_over
from .runs import CONFIG_KEY


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes beside the target, flushes to the disk and renames: no half-written file ever has a checkpoint's name.

    Lightning's own writes to the system's temporary directory and moves, which is a copy under the final name where
    that is another filesystem.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with beside.open("wb") as file:
                torch.save(checkpoint, file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
        directory = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


class LastCheckpoint(ModelCheckpoint):
    """The state after the latest epoch, whatever the monitored metric does; a resumed run goes on from it.

    It is written too when a training is asked to stop, and when it fails. With several processes not when it fails:
    saving ends in a barrier, and a rank that failed alone would wait there for the others. Nor after values that were
    not finite: the running statistics of that step are not worth keeping.
    `ModelCheckpoint(save_last=True)` with a monitor writes it only when the monitored metric improved.
    """

    def __init__(self, dirpath: str) -> None:
        super().__init__(
            dirpath=dirpath,
            filename="last",
            save_on_train_epoch_end=True,
            save_on_exception=True,
            auto_insert_metric_name=False,
            enable_version_counter=False,
        )

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *batch: Any) -> None:
        super().on_train_batch_end(trainer, pl_module, *batch)
        if trainer.global_step == trainer.max_steps and not epoch_is_over(trainer):
            self._save_checkpoint(trainer, self.format_checkpoint_name({}))  # before the epoch is called done

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        is_nonfinite = isinstance(exception, RunFailed)
        is_failure = isinstance(exception, Exception) and trainer.world_size == 1 and not is_nonfinite
        if is_failure or isinstance(exception, SIGTERMException):
            super().on_exception(trainer, pl_module, exception)


class StoreConfig(Callback):
    """Puts the whole config into every checkpoint: it is all that evaluation needs beside the weights."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint[CONFIG_KEY] = self.config
