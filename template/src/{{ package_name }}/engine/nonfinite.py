"""Stops a run whose loss or gradient is NaN or infinite (`on_nonfinite=stop`)."""

import math
from collections.abc import Iterable
from typing import Any, NoReturn

import torch
import torch.distributed as distributed
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn.utils import get_total_norm
from torch.optim import Optimizer

from .gradient_norm import values
from .nonfinite_report import ADVICE, Place, fail, first_gradient, first_module, place


class StopAtNonFinite(Callback):
    """Ends the run, with step, epoch, batch and the first part of the module whose output is not finite.

    On the CPU every step is looked at before it changes the weights: the loss, and the gradient of the first parameter,
    which is the last on the way back; with several processes that of the last one too, which each rank's loss reaches;
    every `log_every_n_steps` all gradients. Looking makes the host wait for a GPU: there it happens every
    `log_every_n_steps` and where an epoch ends, and names the first gradient. With fp16 gradients overflow until the
    loss scaling fits, and skip that step: only losses count. All ranks decide alike: gradients are reduced already, and
    what they saw of losses is shared every `log_every_n_steps`.
    """

    advice = f"{ADVICE}, on_nonfinite=skip leaves such steps out"

    def __init__(self) -> None:
        self.unseen: list[tuple[Place, Tensor]] = []  # of a GPU, with values to look at
        self.suspect: tuple[Place, Any, Tensor] | None = None  # of a bad loss: the batch, the random state before it
        self.batch: Any = None
        self.random = torch.empty(0)

    @property
    def state_key(self) -> str:
        """The same for both answers to `on_nonfinite`, so that a resumed run may change it."""
        return "NonFinite"

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.each_step = pl_module.device.type == "cpu"
        self.scales_loss = getattr(trainer.precision_plugin, "scaler", None) is not None
        groups = [group for optimizer in trainer.optimizers for group in optimizer.param_groups]
        self.weights = [weight for group in groups for weight in group["params"]]  # the shards, with strategy=fsdp
        self.ends = [self.weights[0], self.weights[-1]] if trainer.world_size > 1 else self.weights[:1]

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        if self.each_step:
            self.batch, self.random = batch, torch.get_rng_state()

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:
        if not self.each_step:
            self.unseen.append((place(trainer), loss.detach()))
        elif self.suspect is None and not math.isfinite(loss.item()):
            self.suspect = place(trainer), self.batch, self.random

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer) -> None:
        at_interval = ends_interval(trainer)
        if at_interval or (self.suspect and trainer.world_size == 1):
            self.look(trainer, pl_module)
        if self.scales_loss or not (at_interval or self.each_step):
            return
        watched = self.weights if at_interval else self.ends
        if not math.isfinite(probe(weight.grad for weight in watched)):
            self.stop(trainer, pl_module)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking:
            self.look(trainer, pl_module)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.look(trainer, pl_module)

    def look(self, trainer: Trainer, module: LightningModule) -> None:
        """Stops all ranks if one has seen a loss that is not finite since the last look."""
        bad = [where for where, is_good in self.read() if not is_good]
        bad += [self.suspect[0]] if self.suspect else []
        if trainer.strategy.reduce_boolean_decision(bool(bad), all=False):
            self.stop(trainer, module, bad[0] if bad else None, loss=bool(bad))

    def read(self) -> list[tuple[Place, bool]]:
        """Waits for the GPU; the places that nobody has looked at, and whether they are as they should be."""
        unseen = self.unseen.copy()
        self.unseen.clear()
        good = torch.stack([value for _, value in unseen]).isfinite().tolist() if unseen else []
        return [(where, is_good) for (where, _), is_good in zip(unseen, good, strict=True)]

    def stop(self, trainer: Trainer, module: LightningModule, at: Place | None = None, loss: bool = False) -> NoReturn:
        """Ends the run; all ranks come here in the same step, and those whose loss is bad have the most to say."""
        now, batch, random = self.suspect or (place(trainer), self.batch, self.random)
        mine: dict[str, Any] = {"what": "the loss" if loss or self.suspect else "a gradient", **(at or now)}
        if self.each_step:
            mine["module"] = first_module(module, "training", batch, now["batch"], random)
        mine["parameter"] = first_gradient(module)
        reports: list[Any] = [mine]
        if trainer.world_size > 1:
            reports = [None] * trainer.world_size
            distributed.all_gather_object(reports, mine)
            reports = [{**report, "rank": rank} for rank, report in enumerate(reports)]
        fail(next((report for report in reports if report["what"] == "the loss"), reports[0]), self.advice)


def ends_interval(trainer: Trainer) -> bool:
    every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]
    return (trainer.global_step + 1) % every == 0


def probe(tensors: Iterable[Tensor | None]) -> Tensor:
    """A scalar on the device that is finite only if every number is; 0 where there is nothing.

    A sum is the fastest that one CPU core has, by a factor of 40. On a GPU fewer kernels count.
    """
    numbers = [values(tensor) for tensor in tensors if tensor is not None]
    if numbers and numbers[0].device.type == "cpu":
        value = numbers[0].sum() if len(numbers) == 1 else torch.stack([tensor.sum() for tensor in numbers]).sum()
    else:
        value = get_total_norm(numbers, math.inf, foreach=True)
    return value.full_tensor() if isinstance(value, DTensor) else value
