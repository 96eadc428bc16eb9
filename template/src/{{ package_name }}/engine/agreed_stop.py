"""All ranks leave a training after the same optimizer step, never inside a validation."""

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as distributed
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from .lightning_private import leave, leave_signals_alone, window_is_open
from .stop import StopRequest


class AgreedStop(Callback):
    """Ends a training when one of the ranks was asked to stop.

    A rank may notice a signal between any two operations, so what it was asked is shared after every batch: a single
    number travels over Gloo while the next batch is computed, and the device is never waited for. Lightning's own way
    broadcasts from inside a signal handler, and in every step on the device.

    Args:
        request: What signals asked of this process.
        timeout: Seconds to wait for the other ranks.
    """

    def __init__(self, request: StopRequest, timeout: float) -> None:
        self.request = request
        self.timeout = timeout
        self.agreed = 0  # the signal that all ranks know of
        self.box = torch.zeros(1, dtype=torch.int64)
        self.group: Any = None
        self.sending: Any = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        leave_signals_alone(trainer)
        if trainer.world_size > 1 and self.group is None:
            self.group = distributed.new_group(backend="gloo", timeout=timedelta(seconds=self.timeout))

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.request.patient = True

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.group is None:
            self.agreed = self.request.signum
        else:
            self._receive()
            self._send()
        if self.agreed and not window_is_open(trainer):
            leave(trainer, True)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        leave(trainer, False)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not self.request.patient:
            return
        if self.group is None:
            self.agreed = self.request.signum
        else:
            self._receive()
            self._send()
            self._receive()
        leave(trainer, bool(self.agreed))

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._receive()
        self.request.patient = False

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        if self.agreed and isinstance(exception, SystemExit):
            self.request.reached = True
            self.request.signum = self.agreed
        self.request.patient = False

    def _send(self) -> None:
        self.box.fill_(self.request.signum)
        self.sending = distributed.all_reduce(self.box, distributed.ReduceOp.MAX, group=self.group, async_op=True)

    def _receive(self) -> None:
        if self.sending is not None:
            self.sending.wait()
            self.sending = None
            self.agreed = self.agreed or int(self.box)
