"""How checkpoints are written, and what they hold beside Lightning's own."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.plugins.io import TorchCheckpointIO
from lightning.pytorch.utilities.exceptions import SIGTERMException
from safetensors import SafetensorError

from .config import Config
from .errors import RunFailed, UserError
from .lightning_private import epoch_is_over
from .runs import CONFIG_KEY, load_checkpoint
from .weights_file import UNFINISHED, WEIGHTS, write_weights

BEST = "best.ckpt"
DRAFT = ".{name}.{pid}.tmp"


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes beside the target, flushes to the disk and renames: no half-written file ever has a checkpoint's name.

    Lightning's own writes to the system's temporary directory and moves, which is a copy under the final name where
    that is another filesystem. Beside the best checkpoint it writes `weights.safetensors`; there is none at any moment
    that holds other weights than `best.ckpt`.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        target = Path(path)
        weights = target.with_name(WEIGHTS)
        with _drafts(target, weights) as (draft, weights_draft):
            with draft.open("wb") as file:
                torch.save(checkpoint, file)
            _flush(draft)
            if target.name == BEST:
                write_weights(checkpoint["state_dict"], weights_draft)
                _flush(weights_draft)
                weights.unlink(missing_ok=True)
            draft.replace(target)
            if target.name == BEST:
                weights_draft.replace(weights)
            _flush(target.parent)


def tidy(folder: Path) -> None:
    """Removes what a process left that was killed while it saved, and writes the weights that it did not come to."""
    for pattern in (DRAFT.format(name="*", pid="[0-9]*"), UNFINISHED):
        for draft in folder.glob(pattern):
            draft.unlink(missing_ok=True)
    best, weights = folder / BEST, folder / WEIGHTS
    if best.exists() and not weights.exists():
        with _drafts(weights) as (draft,):
            write_weights(load_checkpoint(best)["state_dict"], draft)
            _flush(draft)
            draft.replace(weights)


@contextmanager
def _drafts(*targets: Path) -> Generator[list[Path]]:
    """A name beside each target to write to, all in one folder; what was not renamed in the end is removed.

    Raises:
        UserError: the disk is full, or the folder cannot be written to. The targets are as they were.
    """
    drafts = [target.with_name(DRAFT.format(name=target.name, pid=os.getpid())) for target in targets]
    try:
        targets[0].parent.mkdir(parents=True, exist_ok=True)
        yield drafts
    except (OSError, RuntimeError, SafetensorError) as error:  # torch raises its own on top of the system's
        if (reason := _system_error(error)) is None:
            raise
        intact = " (what was there before is intact)" if targets[0].exists() else ""
        raise UserError(f"{targets[0]} cannot be written: {reason}{intact}") from error
    finally:
        for draft in drafts:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def _system_error(error: BaseException | None) -> str | None:
    while error is not None:
        if isinstance(error, OSError):
            return error.strerror or str(error)
        if isinstance(error, SafetensorError):
            return str(error)
        error = error.__context__
    return None


def _flush(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class LastCheckpoint(ModelCheckpoint):
    """The state after the latest epoch, whatever the monitored metric does; a resumed run goes on from it.

    It is written too when a training is asked to stop, and when it fails after a step. With several processes not when
    it fails: saving ends in a barrier, and a rank that failed alone would wait there for the others. Nor after values
    that were not finite: the running statistics of that step are not worth keeping.
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

        self.began_at: int | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        self.began_at = trainer.global_step

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *batch: Any) -> None:
        super().on_train_batch_end(trainer, pl_module, *batch)
        if trainer.global_step == trainer.max_steps and not epoch_is_over(trainer):
            self._save_checkpoint(trainer, self.format_checkpoint_name({}))  # before the epoch is called done

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        is_nonfinite = isinstance(exception, RunFailed)
        has_trained = self.began_at is not None and trainer.global_step > self.began_at
        is_failure = isinstance(exception, Exception) and trainer.world_size == 1 and not is_nonfinite
        if (is_failure and has_trained) or isinstance(exception, SIGTERMException):
            super().on_exception(trainer, pl_module, exception)


class StoreConfig(Callback):
    """Puts the whole config into every checkpoint: it is all that evaluation needs beside the weights."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint[CONFIG_KEY] = self.config
