"""Going on with a run from its last checkpoint."""

import logging
from pathlib import Path

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from .config import Config
from .header import short
from .lightning_private import rebuild_training_loader

log = logging.getLogger(__name__)


def last_checkpoint(config: Config) -> Path | None:
    """The checkpoint to go on from; None where the run begins."""
    last = Path(config["paths"]["run"]) / "checkpoints" / "last.ckpt"
    if config["resume"] != "auto" or not last.exists():
        return None
    log.info("going on from %s", short(last))
    return last


def training_position(trainer: Trainer) -> tuple[int, int]:
    """The epoch to train next, and the batches of it that a resumed run has done."""
    fit = trainer.fit_loop
    done = fit.epoch_loop.batch_progress.current.processed if fit.restarting else 0  # type: ignore[attr-defined]
    return fit.epoch_progress.current.processed, done  # type: ignore[attr-defined]


class ResumeEpoch(Callback):
    """Makes a resumed epoch go on with the samples that it has not seen.

    A schedule asks for the length of the training before the checkpoint's progress is known; Lightning then builds the
    loader, whose workers begin at once to load the first batches of epoch 0.
    """

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.fit_loop.restarting:
            rebuild_training_loader(trainer)
