"""Metrics of a stage: little work a step, one reduction an epoch."""

from collections.abc import MutableMapping
from typing import Any, NamedTuple, cast

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torch import Tensor, nn
from torchmetrics import Metric

WAITING = 16  # batches that are measured at once
LARGEST = 2**16  # outputs of a batch, in elements, that may wait; larger ones hide the cost of an update


class Step(NamedTuple):
    """What a module computed for one batch.

    Attributes:
        loss: Scalar tensor to minimise, the mean over the batch.
        outputs: What metrics take as predictions, such as logits `[B, num_classes]`.
        targets: What metrics compare with, such as labels `[B]` int64. Its length is the number of samples.
    """

    loss: Tensor
    outputs: Tensor
    targets: Tensor


class MeanLoss(Metric):
    """Mean of batch losses, each weighted by its number of samples; exact over unequal batches and over ranks.

    torchmetrics' `MeanMetric` checks for NaN, which synchronises a GPU, or ignores the weights when told not to.

    Attributes:
        only_finite: Leaves out batches whose loss is not finite, as a training does that skips their steps.
    """

    full_state_update = False
    only_finite = False
    total: Tensor
    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.add_state("total", torch.zeros(()), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros(()), dist_reduce_fx="sum")

    def update(self, losses: Tensor, samples: list[int]) -> None:
        """Adds mean losses `[n]` of n batches with so many samples each."""
        weights = torch.tensor(samples, dtype=losses.dtype).to(losses.device, non_blocking=True)
        if self.only_finite:
            finite = losses.isfinite()
            losses, weights = losses.where(finite, 0), weights * finite
            self.count.add_(weights.sum())
        else:
            self.count.add_(sum(samples))
        self.total.add_(losses @ weights)

    def compute(self) -> Tensor:
        """The mean over all samples, a scalar float32 tensor."""
        return self.total / self.count


class StageMetrics(nn.Module):
    """The metrics of one stage by name; `loss` is always among them.

    Small batches wait until there are 16 of them: on a small model an update costs 8 % of a step, and sixteen small
    updates cost ten times as much as a large one. The first batch never waits, so that a mistake in it shows at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.by_name = cast("MutableMapping[str, Metric]", nn.ModuleDict({"loss": MeanLoss()}))
        self.waiting: list[Step] = []

    def add(self, step: Step) -> None:
        """Measures a batch, now or with the next ones; nothing that is kept holds a graph."""
        loss, outputs, targets = step
        waiting = self.waiting
        if waiting and outputs.shape[1:] != waiting[0].outputs.shape[1:]:
            self.flush()
        waiting.append(Step(loss.detach(), outputs.detach(), targets))
        if len(waiting) >= WAITING or outputs.numel() > LARGEST or not self.by_name["loss"].update_called:
            self.flush()

    def flush(self) -> None:
        """Measures the batches that wait."""
        if not self.waiting:
            return
        losses, outputs, targets = zip(*self.waiting, strict=True)
        self.waiting.clear()
        samples = [len(target) for target in targets]
        for name, metric in self.by_name.items():
            if name == "loss":
                metric.update(torch.stack(losses), samples)
            else:
                metric.update(torch.cat(outputs), torch.cat(targets))


class LogStageMetrics(Callback):
    """Logs what a `TrainingModule` measured: each metric once an epoch, the training loss every `log_every_n_steps`.

    An epoch that is shorter than that interval sets it, so that no curve stays empty.
    """

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        steps = int(trainer.num_training_batches // trainer.accumulate_grad_batches)
        trainer.log_every_n_steps = min(trainer.log_every_n_steps, max(1, steps))  # type: ignore[attr-defined]

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]
        if trainer.global_step % every == 0 and isinstance(outputs, dict):
            loss = outputs["loss"]
            pl_module.log("train/loss_step", loss, on_step=True, on_epoch=False, prog_bar=True, sync_dist=True)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._log("train", trainer, pl_module)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._log("val", trainer, pl_module)

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._log("test", trainer, pl_module)

    def _log(self, stage: str, trainer: Trainer, module: LightningModule) -> None:
        metrics = getattr(module, f"{stage}_metrics", None)
        if not isinstance(metrics, StageMetrics):
            return
        metrics.flush()
        for name, metric in metrics.by_name.items():
            # a rank without samples takes part, or the others would wait for it
            if trainer.strategy.reduce_boolean_decision(metric.update_called, all=False):
                module.log(f"{stage}/{name}", metric, on_step=False, on_epoch=True)
