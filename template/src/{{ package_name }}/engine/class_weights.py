"""A loss in which the samples of rare classes may count more."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEAST = 1e-6  # with the largest weight its inverse, single precision keeps both


class ClassWeightedLoss(nn.CrossEntropyLoss):
    """Cross entropy of logits that weights each training sample by its class: the sum of w·loss over that of w.

    While training and without label smoothing it is torch's `weight`. With smoothing, torch also weights the share of
    a target that lies on other classes, by their weights: of 990 and 10 samples, balanced weights and a smoothing of
    0.1 then teach that frequent samples are of the rare class (84 %). Here targets stay as they are smoothed, and the
    loss of guessing is ln(classes). In evaluation every sample counts alike, so that losses are exact over any batches
    and devices, and can be compared between runs with other weights.

    Args:
        num_classes: How many weights there must be.
        class_weights: One for each class, from 1e-6 to 1e6; None: all count alike.
        label_smoothing: Share of the target that is spread over all classes, from 0 to 1.

    Raises:
        ValueError: weights or a smoothing that cannot be.
    """

    class_weights: Tensor | None

    def __init__(self, num_classes: int, class_weights: Sequence[float] | None, label_smoothing: float) -> None:
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"label_smoothing must be from 0 to 1 (got {label_smoothing})")
        super().__init__(label_smoothing=label_smoothing)
        weights = None if class_weights is None else torch.tensor(_checked(class_weights, num_classes))
        # no weight of the network: checkpoints fit whatever is set here
        self.register_buffer("class_weights", weights, persistent=False)

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Mean loss of logits `[B, classes, ...]` and labels `[B, ...]`, or of shares `[B, classes]` of each class."""
        if self.class_weights is None or not self.training:
            return super().forward(logits, targets)
        losses = F.cross_entropy(
            logits, targets, ignore_index=self.ignore_index, reduction="none", label_smoothing=self.label_smoothing
        )
        if targets.is_floating_point():
            weights = (targets * self.class_weights).sum(1)
        else:
            counts = targets != self.ignore_index
            weights = self.class_weights[targets.long().where(counts, 0)] * counts
        return (weights * losses).sum() / weights.sum()


def balanced_weights(counts: Sequence[int]) -> list[float]:
    """Weights with which all classes count alike: samples / (classes · samples of the class), to four digits.

    A class without samples gets the weight of one with a single sample.
    """
    return [float(f"{sum(counts) / (len(counts) * max(count, 1)):.4g}") for count in counts]


def _checked(weights: Sequence[float], num_classes: int) -> list[float]:
    if not isinstance(weights, (list, tuple)) or len(weights) != num_classes:
        found = f"{len(weights)} numbers" if isinstance(weights, (list, tuple)) else repr(weights)
        raise ValueError(f"class_weights must be null or {num_classes} numbers, one for each class (got {found})")
    for label, weight in enumerate(weights):
        is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if not is_number or not LEAST <= weight <= 1 / LEAST:
            bounds = f"numbers from {LEAST:g} to {1 / LEAST:g}"
            raise ValueError(f"class_weights must be {bounds} (got {weight!r} for class {label})")
    return [float(weight) for weight in weights]
