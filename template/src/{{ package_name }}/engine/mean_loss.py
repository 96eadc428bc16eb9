"""The mean of a loss over samples."""

import torch
from torch import Tensor
from torchmetrics import Metric


class MeanLoss(Metric):
    """Mean of batch losses, each weighted by its number of samples; exact over unequal batches and over ranks.

    torchmetrics' `MeanMetric` checks for NaN, which synchronises a GPU, or ignores the weights when told not to.
    """

    full_state_update = False
    total: Tensor
    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.add_state("total", torch.zeros(()), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros(()), dist_reduce_fx="sum")

    def update(self, losses: Tensor, samples: list[int]) -> None:
        """Adds mean losses `[n]` of n batches with so many samples each."""
        self.total.add_(losses @ torch.tensor(samples, dtype=losses.dtype).to(losses.device, non_blocking=True))
        self.count.add_(sum(samples))

    def compute(self) -> Tensor:
        """The mean over all samples, a scalar float32 tensor."""
        return self.total / self.count
