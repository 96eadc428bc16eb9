"""The base of every LightningModule: it measures steps and makes optimizer and schedule from their configs."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any, Literal, NamedTuple, cast

from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torchmetrics import Metric

from .lightning_private import PlainHookName, unscale_before_clipping
from .mean_loss import MeanLoss
from .optimizers import OptimizerFactory, parameter_groups
from .schedules import Horizon, ScheduleFactory

STAGES = ("train", "val", "test")


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


class TrainingModule(PlainHookName):
    """A LightningModule whose steps are measured: write `step`, and name the metrics with `track`.

    It overrides `training_step`, `validation_step`, `test_step` and `configure_optimizers` and no other hook. A
    subclass that overrides one of these, or any other, gets exactly Lightning's behaviour.

    Args:
        optimizer: Makes the optimizer from parameter groups. Not needed to evaluate.
        scheduler: Makes the learning-rate schedule from the optimizer and the horizon. Not needed to evaluate.
        monitor: The metric that chooses the best checkpoint.
        mode: Whether its best value is the smallest or the largest.
        compile: The network is compiled before training; read by `engine.network`.
        channels_last: The network's memory format; read by `engine.network`.
    """

    net: nn.Module

    def __init__(
        self,
        optimizer: OptimizerFactory | None = None,
        scheduler: ScheduleFactory | None = None,
        monitor: str = "val/loss",
        mode: Literal["min", "max"] = "min",
        compile: bool | str = False,
        channels_last: bool = False,
    ) -> None:
        super().__init__()
        self.make_optimizer = optimizer
        self.make_schedule = scheduler
        self.monitor = monitor
        self.mode: Literal["min", "max"] = mode
        self.compile_network = compile
        self.channels_last = channels_last
        # not plain "train", which is a method of every module
        self.metrics = nn.ModuleDict({f"{stage}_metrics": nn.ModuleDict({"loss": MeanLoss()}) for stage in STAGES})

    def track(self, *, stages: Iterable[str] = STAGES, **metrics: Metric) -> None:
        """Adds metrics under `<stage>/<name>`: updated every step with outputs and targets, logged once an epoch."""
        for stage in stages:
            self.metrics_of(stage).update({name: metric.clone() for name, metric in metrics.items()})

    def metrics_of(self, stage: str) -> MutableMapping[str, Metric]:
        """The metrics of `train`, `val` or `test` by name; `loss` is always among them."""
        return cast("MutableMapping[str, Metric]", self.metrics[f"{stage}_metrics"])  # a ModuleDict

    def step(self, batch: Any) -> Step:
        """Computes loss, outputs and targets of one batch, in every stage alike."""
        raise NotImplementedError(f"{type(self).__name__}.step(batch) must return a Step")

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        return self._measured("train", self.step(batch))

    def validation_step(self, batch: Any, batch_idx: int) -> Tensor:
        return self._measured("val", self.step(batch))

    def test_step(self, batch: Any, batch_idx: int) -> Tensor:
        return self._measured("test", self.step(batch))

    def configure_optimizers(self) -> OptimizerLRScheduler:
        if self.make_optimizer is None:
            return None
        optimizer = self.make_optimizer(parameter_groups(self))
        unscale_before_clipping(optimizer)
        if self.make_schedule is None:
            return optimizer
        schedule = self.make_schedule(optimizer, Horizon(self.trainer, self.monitor, self.mode))
        return {"optimizer": optimizer, "lr_scheduler": schedule}  # type: ignore[typeddict-item]

    def _measured(self, stage: str, step: Step) -> Tensor:
        loss, outputs, targets = step
        outputs = outputs.detach()
        for name, metric in self.metrics_of(stage).items():
            if name == "loss":
                metric.update(loss, len(targets))
            else:
                metric.update(outputs, targets)
        return loss
