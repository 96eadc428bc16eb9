"""The share of a training's time in which it waits for data, and what would help."""

import logging
import time
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from .cores import loader_workers

MUCH = 0.3  # of the time of an epoch
LONG_ENOUGH = 1.0  # seconds of an epoch without its first step: shorter ones say little

log = logging.getLogger(__name__)


class DataWait(Callback):
    """Measures, in each epoch, the time between a step and the next one against all time of training.

    That is loading, copying to the device and augmenting; validations are left out. The clock is read twice a step, and
    the device is not waited for. It belongs behind all other callbacks, whose work after a step would count as waiting.
    The first epoch with a share above 30 % gets a line that says what would help.
    """

    def __init__(self) -> None:
        self.has_said = False
        self._reset()

    def _reset(self) -> None:
        self.waited = self.worked = self.first_wait = self.first_work = self.squares = 0.0
        self.steps = 0
        self.since = time.perf_counter()

    @property
    def share(self) -> float:
        """Of the epoch until now, from 0 to 1."""
        return self.waited / max(self.waited + self.worked, 1e-9)

    def samples_per_second(self, trainer: Trainer) -> float | None:
        """Of the epoch until now, over all devices; None where the loader has no batches of one size."""
        size = getattr(getattr(trainer.train_dataloader, "batch_sampler", None), "batch_size", None)
        return size and size * trainer.world_size * self.steps / max(self.waited + self.worked, 1e-9)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._reset()

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._reset()
        self.augmenting = getattr(trainer.datamodule, "seconds_augmenting", 0.0)  # type: ignore[attr-defined]

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        now = time.perf_counter()
        waited = now - self.since
        self.waited += waited
        self.squares += waited * waited
        self.since = now
        if not self.steps:
            self.first_wait = waited

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        now = time.perf_counter()
        self.worked += now - self.since
        self.since = now
        self.steps += 1
        if self.steps == 1:
            self.first_work = self.worked

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.since = time.perf_counter()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        waited, worked = self.waited - self.first_wait, self.worked - self.first_work
        if self.has_said or waited + worked < LONG_ENOUGH or waited < MUCH * (waited + worked):
            return
        self.has_said = True
        if trainer.is_global_zero:
            log.warning(
                "%.0f %% of the training waits for data: %s", 100 * waited / (waited + worked), self._cure(trainer)
            )

    def _cure(self, trainer: Trainer) -> str:
        loader = trainer.train_dataloader
        workers: int = getattr(loader, "num_workers", 0)
        augmenting = getattr(trainer.datamodule, "seconds_augmenting", 0.0) - self.augmenting  # type: ignore[attr-defined]
        waits = self.steps - 1
        mean = (self.waited - self.first_wait) / waits
        spread = (self.squares - self.first_wait**2) / waits / mean**2 - 1  # variance over squared mean
        return cure(
            workers,
            loader_workers(max(1, trainer.world_size // trainer.num_nodes)),
            augmenting / self.waited,
            spread,
            getattr(loader, "prefetch_factor", None) or 2,
        )


def cure(workers: int, cores: int, augmenting: float, spread: float, prefetch: int) -> str:
    """Which of the usual cures fits.

    Args:
        workers: Processes that load data for this device.
        cores: As many would fit.
        augmenting: Share of the waiting in which `augment_batch` runs.
        spread: Variance of the waits over their squared mean; regular bursts of `workers` batches have `workers - 1`.
        prefetch: Batches that each worker loads ahead.
    """
    if augmenting > 0.5:
        return "most of it is augment_batch: make it cheaper (data.augment=false shows what is left) or train on a GPU"
    if workers < cores:
        return f"type data.num_workers={cores} (it is {workers})"
    if workers and spread > 2 * workers:
        return f"it comes in bursts, which more batches loaded ahead even out: type data.prefetch_factor={4 * prefetch}"
    return (
        "no core is left to load with: decode and resize the samples once, keep them on a faster disk or in memory, "
        "and augment whole batches on the device (augment_batch) instead of single samples in the dataset"
    )
