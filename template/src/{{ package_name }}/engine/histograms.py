"""Histograms of the weights and gradients of every layer (`callbacks=histograms`)."""

from math import nan
from typing import Any, NamedTuple

import numpy as np
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger
from numpy.typing import NDArray
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from .errors import UserError
from .gradient_norm import values

BINS = 64


class Histogram(NamedTuple):
    """The finite values of a tensor.

    Attributes:
        counts: Values in each bin, int64 `[BINS]`.
        edges: Of the bins, from the least value to the largest, float64 `[BINS + 1]`.
        mean, std, min, max: Of the finite values; NaN if there are none.
        nonfinite: How many values are NaN or infinite.
    """

    counts: NDArray[np.int64]
    edges: NDArray[np.float64]
    mean: float
    std: float
    min: float
    max: float
    nonfinite: int

    @classmethod
    def of(cls, tensor: Tensor) -> "Histogram":
        """Counts on the tensor's device, which is waited for."""
        numbers = values(tensor.detach()).flatten().float()
        finite = numbers[numbers.isfinite()]
        nonfinite = len(numbers) - len(finite)
        if not len(finite):
            return cls(np.zeros(BINS, np.int64), np.linspace(0, 1, BINS + 1), nan, nan, nan, nan, nonfinite)
        std, mean = torch.std_mean(finite, correction=0)
        mean, std, least, most = torch.stack([mean, std, *finite.aminmax()]).tolist()
        is_narrow = most - least < torch.finfo(torch.float32).tiny
        low, high = (least - 0.5, most + 0.5) if is_narrow else (least, most)
        bins = ((finite - low) / (high - low) * BINS).nan_to_num_(0)  # the range may exceed what float32 holds
        counts = (
            bins.clamp_(0, BINS - 1).to(torch.uint8).bincount(minlength=BINS)
        )  # torch.histc is not deterministic on a GPU
        return cls(counts.cpu().numpy(), np.linspace(low, high, BINS + 1), mean, std, least, most, nonfinite)


class Histograms(Callback):
    """Logs `histograms/weights/<parameter>` and `histograms/gradients/<parameter>` of every trained parameter.

    They show the weights that an optimizer step begins with and the gradients that it uses, unscaled and before
    clipping, of sparse ones what they hold. TensorBoard and W&B get histograms, other loggers `/mean`, `/std`, `/min`
    and `/max` of the finite values; `/nonfinite` counts the others where there are any. Rank 0 writes. With
    strategy=fsdp all processes gather one whole parameter at a time, and nothing is left out.

    Args:
        every_n_steps: Optimizer steps from one histogram to the next, beginning with the first step.

    Raises:
        UserError: it is not a whole number from 1.
    """

    def __init__(self, every_n_steps: int = 100) -> None:
        if not isinstance(every_n_steps, int) or every_n_steps < 1:
            raise UserError(
                f"every_n_steps must be a whole number from 1 (got {every_n_steps!r}); "
                "type callbacks=default for no histograms"
            )
        self.every_n_steps = every_n_steps

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer) -> None:
        if trainer.global_step % self.every_n_steps or not trainer.loggers:
            return
        found: dict[str, Histogram] = {}
        for name, parameter in pl_module.named_parameters():
            for kind, tensor in (("weights", parameter), ("gradients", parameter.grad)):
                if tensor is None or not parameter.requires_grad:
                    continue
                whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor  # which takes all processes
                if trainer.is_global_zero:
                    found[f"histograms/{kind}/{name}"] = Histogram.of(whole)
        if trainer.is_global_zero:
            for logger in trainer.loggers:
                write(logger, found, trainer.global_step)


def write(logger: Logger, found: dict[str, Histogram], step: int) -> None:
    """Writes the histograms of a step, by name, in what form the logger has for them."""
    metrics: dict[str, Any] = {f"{name}/nonfinite": part.nonfinite for name, part in found.items() if part.nonfinite}
    finite = {name: part for name, part in found.items() if part.counts.any()}
    if isinstance(logger, TensorBoardLogger):
        for name, part in finite.items():
            number = int(part.counts.sum())
            logger.experiment.add_histogram_raw(
                name,
                min=part.edges[0],
                max=part.edges[-1],
                num=number,
                sum=part.mean * number,
                sum_squares=(part.mean**2 + part.std**2) * number,
                bucket_limits=part.edges[1:],
                bucket_counts=part.counts,
                global_step=step,
            )
    elif isinstance(logger, WandbLogger):
        from wandb import Histogram as WandbHistogram

        metrics |= {name: WandbHistogram(np_histogram=(part.counts, part.edges)) for name, part in finite.items()}
    else:
        for name, part in finite.items():
            metrics |= {f"{name}/{what}": getattr(part, what) for what in ("mean", "std", "min", "max")}
    if metrics:
        logger.log_metrics(metrics, step)
