"""The base of every LightningModule: it measures steps and makes optimizer and schedule from their configs."""

from collections.abc import Iterable
from typing import Any, Literal

from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torchmetrics import Metric

from .build import mistake
from .first_batch import refuse_nan, warn_of_probabilities
from .fsdp import shard
from .lightning_private import PlainHookName, unscale_before_clipping
from .optimizers import OptimizerFactory, parameter_groups
from .schedules import Horizon, ScheduleFactory, make_schedule
from .stage_metrics import StageMetrics, Step

__all__ = ["Step", "TrainingModule"]


class TrainingModule(PlainHookName):
    """A LightningModule whose steps are measured: write `step`, and name the metrics with `track`.

    It overrides `training_step`, `validation_step`, `test_step`, `configure_model` and `configure_optimizers` and no
    other hook. A subclass that overrides one of these, or any other, gets exactly Lightning's behaviour.

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
        self.schedule_begins = 0  # the optimizer step; later than 0 only after resume_schedule=restart
        self.train_metrics = StageMetrics()
        self.val_metrics = StageMetrics()
        self.test_metrics = StageMetrics()

    def track(self, *, stages: Iterable[str] = ("train", "val", "test"), **metrics: Metric) -> None:
        """Adds metrics under `<stage>/<name>`: measured with outputs and targets, logged once an epoch."""
        for stage in stages:
            getattr(self, f"{stage}_metrics").by_name.update({name: metric.clone() for name, metric in metrics.items()})

    def step(self, batch: Any) -> Step:
        """Computes loss, outputs and targets of one batch, in every stage alike."""
        raise NotImplementedError(f"{type(self).__name__}.step(batch) must return a Step")

    def check_batch(self, batch: Any) -> None:
        """Looks at the first batch of training and of validation, as `step` gets them.

        Later steps pay nothing for it. Override it for what the network and the loss need.

        Raises:
            UserError: the batch cannot be trained with.
        """
        refuse_nan(batch)

    def check_step(self, step: Step) -> None:
        """Looks at what the first training step computed; override it where outputs are meant to be probabilities."""
        warn_of_probabilities(step.outputs)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        step = self.step(batch)
        self.train_metrics.add(step)
        return step.loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.val_metrics.add(self.step(batch))

    def test_step(self, batch: Any, batch_idx: int) -> Step:
        step = self.step(batch)
        self.test_metrics.add(step)
        return step

    def configure_model(self) -> None:
        shard(self)

    def configure_optimizers(self) -> OptimizerLRScheduler:
        if self.make_optimizer is None:
            return None
        where = "optimizer"
        try:
            optimizer = self.make_optimizer(parameter_groups(self))
            unscale_before_clipping(optimizer)
            if self.make_schedule is None:
                return optimizer
            where = "scheduler"
            self.horizon = Horizon(self.trainer, self.monitor, self.mode, self.schedule_begins)
            schedule = make_schedule(self.make_schedule, optimizer, self.horizon)
        except (TypeError, ValueError, IndexError, RuntimeError) as error:
            raise mistake(where, error) from error
        return {"optimizer": optimizer, "lr_scheduler": schedule}  # type: ignore[typeddict-item]
