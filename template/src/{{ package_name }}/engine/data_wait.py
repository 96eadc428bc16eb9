"""The share of a training's time in which it waits for data."""

import time
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback


class DataWait(Callback):
    """Measures, in each epoch, the time between a step and the next one against all time of training.

    That is loading, copying to the device and augmenting; validations are left out. The clock is read twice a step, and
    the device is not waited for. It belongs behind all other callbacks, whose work after a step would count as waiting.
    """

    def __init__(self) -> None:
        self.waited = self.worked = self.since = 0.0

    @property
    def share(self) -> float:
        """Of the epoch until now, from 0 to 1."""
        return self.waited / max(self.waited + self.worked, 1e-9)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._begin()

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._begin()

    def _begin(self) -> None:
        self.waited = self.worked = 0.0
        self.since = time.perf_counter()

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        now = time.perf_counter()
        self.waited += now - self.since
        self.since = now

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        now = time.perf_counter()
        self.worked += now - self.since
        self.since = now

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.since = time.perf_counter()
