"""What a person sees while a model trains."""

import logging
import math
import sys
import time
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from .data_wait import DataWait
from .lightning_private import CountingFromOne

log = logging.getLogger(__name__)


class ProgressBar(CountingFromOne):
    """Rich's bar, on a terminal only: in a file it would be a heap of half-drawn lines.

    Drawing takes milliseconds. It is done by the clock, so that it costs the same for fast and for slow steps, where
    Lightning counts steps.

    Args:
        interval: Seconds between two drawings.
    """

    def __init__(self, interval: float = 0.5) -> None:
        super().__init__(refresh_rate=1 if sys.stdout.isatty() else 0)
        self.interval = interval
        self.drawn = 0.0

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._is_due(batch_idx + 1 == self.total_train_batches):
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)

    def _is_due(self, is_last: bool) -> bool:
        now = time.monotonic()
        if self.is_disabled or (now - self.drawn < self.interval and not is_last):
            return False
        self.drawn = now
        return True

    def get_metrics(self, trainer: Trainer, pl_module: LightningModule) -> dict[str, Any]:
        metrics = super().get_metrics(trainer, pl_module)
        metrics.pop("v_num", None)
        return metrics


class EpochLines(Callback):
    """One line for every epoch: metrics, the learning rate that it began with, and seconds, validation included; then
    the samples per second and the share of time spent waiting for data, of the training alone.

    A module's own `on_train_epoch_end` comes after those of callbacks: a line is written when nothing more can be
    logged for its epoch.
    """

    unwritten: str | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._begin(trainer)  # a run that goes on in the middle of an epoch has no start of the epoch

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._write(trainer)
        self._begin(trainer)

    def _begin(self, trainer: Trainer) -> None:
        self.began = time.monotonic()
        self.lr = trainer.optimizers[0].param_groups[0]["lr"] if trainer.optimizers else math.nan

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        of = f"/{trainer.max_epochs}" if trainer.max_epochs and trainer.max_epochs > 0 else ""
        number = f"{trainer.current_epoch + 1}".rjust(len(of) - 1)
        self.unwritten = f"epoch {number}{of}  %s  lr {self.lr:.2e}  {time.monotonic() - self.began:.1f} s"
        for callback in trainer.callbacks:  # type: ignore[attr-defined]
            if isinstance(callback, DataWait):
                speed = callback.samples_per_second(trainer)
                self.unwritten += "" if speed is None else f"  {speed:,.0f} samples/s"
                self.unwritten += f"  waiting {100 * callback.share:.0f} %%"

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._write(trainer)

    def _write(self, trainer: Trainer) -> None:
        if self.unwritten is None:
            return
        parts: list[str] = []
        for stage in ("train", "val"):
            metrics = [
                f"{name.removeprefix(f'{stage}/')} {float(value):.4f}"
                for name, value in trainer.callback_metrics.items()
                if name.startswith(f"{stage}/") and not name.endswith("_step")
            ]
            parts += [f"{stage} {' '.join(metrics)}"] if metrics else []
        log.info(self.unwritten, "  ".join(parts))
        self.unwritten = None
