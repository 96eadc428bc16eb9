"""Skips the steps whose gradients are NaN or infinite (`on_nonfinite=skip`)."""

import logging
import math
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from .errors import UserError
from .nonfinite import StopAtNonFinite, ends_interval, probe
from .nonfinite_report import ADVICE, Place, place
from .stage_metrics import MeanLoss, StageMetrics

IN_A_ROW = 10  # skipped steps that end a training

log = logging.getLogger(__name__)


class SkipNonFinite(StopAtNonFinite):
    """Leaves weights, optimizer and running statistics as they were before such a step, and the loss out of the mean.

    The step counts as a step of the training and of its schedule. The host decides on the CPU, before the optimizer
    steps. It does not wait for a GPU: a fused optimizer keeps still there by itself, as it does for a gradient scaler,
    and skips are counted every `log_every_n_steps`. For another optimizer, and for a sharded network, it has to wait.
    With fp16 the scaler skips; losses are counted.
    """

    advice = f"{IN_A_ROW} steps in a row were skipped; {ADVICE}"

    def __init__(self) -> None:
        super().__init__()
        self.skipped = self.row = 0
        self.before: list[Tensor] = []  # buffers before the step

    def state_dict(self) -> dict[str, Any]:
        return {"skipped": self.skipped}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.skipped = state_dict["skipped"]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        stage = getattr(pl_module, "train_metrics", None)
        if isinstance(stage, StageMetrics) and isinstance(loss := stage.by_name["loss"], MeanLoss):
            loss.only_finite = True

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        super().on_train_batch_start(trainer, pl_module, batch, batch_idx)
        if not self.before:
            self.before = [buffer.clone() for buffer in pl_module.buffers()]

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:
        if self.each_step or self.scales_loss:
            super().on_before_backward(trainer, pl_module, loss)

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer) -> None:
        value = probe(weight.grad for weight in self.weights)
        buffers = list(pl_module.buffers())
        waits = self.each_step or not (self.scales_loss or _can_keep_still(optimizer))
        if not waits:
            bad = ~value.isfinite()
            if not self.scales_loss:
                optimizer.found_inf, optimizer.grad_scale = bad.float(), None  # type: ignore[attr-defined]
                self.unseen.append((place(trainer), value))
            for buffer, before in zip(buffers, self.before, strict=True):
                buffer.copy_(before.where(bad, buffer))
        elif not self._count(place(trainer), math.isfinite(value.item())):
            self.stop(trainer, pl_module)
        elif self.row:
            for weight in self.weights:
                weight.grad = None
            for buffer, before in zip(buffers, self.before, strict=True):
                buffer.copy_(before)
        if ends_interval(trainer):
            self.look(trainer, pl_module)
        self.before.clear()
        self.suspect = None

    def look(self, trainer: Trainer, module: LightningModule) -> None:
        """Counts the skipped steps since the last look."""
        too_many = [where for where, is_good in self.read() if not self._count(where, is_good)]
        if trainer.strategy.reduce_boolean_decision(bool(too_many), all=False):
            self.stop(trainer, module, too_many[0] if too_many else None, loss=self.scales_loss)

    def _count(self, where: Place, is_good: bool) -> bool:
        """Whether the training may go on."""
        self.row = 0 if is_good else self.row + 1
        if not is_good:
            self.skipped += 1
            log.warning("skipped step %(step)d (epoch %(epoch)d, batch %(batch)d): not finite", where)
        return self.row < IN_A_ROW


def _can_keep_still(optimizer: Optimizer) -> bool:
    groups = optimizer.param_groups
    return all(group.get("fused") and not isinstance(group["params"][0], DTensor) for group in groups)


def make_nonfinite(action: str) -> StopAtNonFinite:
    """What `on_nonfinite` asks for."""
    if action not in ("stop", "skip"):
        raise UserError(f"on_nonfinite must be stop or skip (got {action!r})")
    return SkipNonFinite() if action == "skip" else StopAtNonFinite()


def skipped_steps(trainer: Trainer) -> dict[str, int]:
    """For the record: how many steps a training has skipped that may skip."""
    callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]
    return next(({"skipped_steps": part.skipped} for part in callbacks if isinstance(part, SkipNonFinite)), {})
