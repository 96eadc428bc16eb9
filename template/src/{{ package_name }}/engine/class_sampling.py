"""Training batches in which rare classes occur more often than in the training set (`data.sampler`)."""

from typing import Any, Literal

import numpy as np
import torch
from lightning.pytorch import LightningModule, Trainer
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import ConcatDataset, Dataset, Subset

from .class_weights import ClassWeightedLoss
from .errors import UserError
from .sampling import TrainingBatches
from .split_facts import inputs_and_labels

Sampler = Literal["uniform", "weighted", "balanced"]
SAMPLERS = ("uniform", "weighted", "balanced")


class WeightedBatches(TrainingBatches):
    """Draws samples with replacement: each draw is sample i with probability weights[i] / sum(weights).

    An epoch draws as many as `TrainingBatches` takes; some samples come several times in it, others not at all.

    Args:
        weights: Of each sample, `[N]`, finite and not negative, of which one at least is above 0.
        order: As for `TrainingBatches`, from `batch_size` on.
    """

    def __init__(self, weights: Tensor, *order: Any) -> None:
        super().__init__(len(weights), *order)
        cumulative = weights.double().cumsum(0)
        self.cumulative = cumulative / cumulative[-1]  # its end is exactly 1, which no draw reaches
        self.dropped = 0

    def order(self) -> list[int]:
        draws = torch.rand(self.taken, dtype=torch.float64, generator=self.order_generator())
        return torch.searchsorted(self.cumulative, draws, right=True).tolist()


class BalancedBatches(TrainingBatches):
    """Shows every class equally often, give or take one sample, in each epoch.

    So does each batch of at least as many samples as there are classes, on each device. An epoch is as long as that of
    `TrainingBatches`. No sample of a class comes again before all others of it have come.

    Args:
        classes: Of each sample, `[N]` int64, from 0 on; each number up to the largest occurs.
        order: As for `TrainingBatches`, from `batch_size` on.
    """

    def __init__(self, classes: Tensor, *order: Any) -> None:
        super().__init__(len(classes), *order)
        self.members = classes.sort(stable=True).indices.split(torch.bincount(classes).tolist())
        self.dropped = 0

    def order(self) -> list[int]:
        generator, size = self.order_generator(), self.batch_size * self.world_size
        count = len(self.members)
        rounds = -(-self.taken // count)  # in each of them every class has its turn
        turns = torch.rand(1 if count <= size else rounds, count, generator=generator).argsort(1)
        turns = turns.expand(rounds, count).flatten()[: self.taken]
        chosen = [
            _repeated_shuffles(members, draws, generator)
            for members, draws in zip(self.members, torch.bincount(turns, minlength=count).tolist(), strict=True)
        ]
        samples = torch.empty_like(turns)
        samples[turns.sort(stable=True).indices] = torch.cat(chosen)
        # Rank r takes every `world_size`-th sample: sorted by class, a batch gives each rank its share of each class.
        by_class = turns.view(-1, size).sort(stable=True, dim=1).indices
        rows = samples.view(-1, size).gather(1, by_class).view(-1, self.batch_size, self.world_size)
        shuffled = torch.rand(rows.shape[:2], generator=generator).argsort(1).unsqueeze(2).expand_as(rows)
        return rows.gather(1, shuffled).flatten().tolist()


def training_batches(
    sampler: Sampler,
    dataset: Dataset[Any],
    labels: Any,
    weights: Any,
    samples: int,
    *order: Any,
) -> TrainingBatches:
    """The batches that `data.sampler` asks for.

    Args:
        sampler: `uniform`, `weighted` or `balanced`.
        dataset: Looked at for its labels where `labels` is None.
        labels: The class of each sample, `[N]` numbers, strings or the like.
        weights: Those of each sample, `[N]`, in place of inverse class frequencies, for `weighted`.
        samples: How many there are.
        order: As for `TrainingBatches`, from `batch_size` on.

    Raises:
        UserError: there are no labels, or they or the weights do not fit.
    """
    if sampler == "uniform":
        return TrainingBatches(samples, *order)
    if sampler == "weighted" and weights is not None:
        batches: TrainingBatches = WeightedBatches(_checked_weights(weights, samples), *order)
        batches.words = "sampler    weighted, with train_weights"
        return batches
    found = labels if labels is not None else _labels_of(dataset)
    if found is None:
        raise UserError(
            f"data.sampler={sampler} needs the class of each training sample: let setup of the data module assign "
            f"self.train_labels, in the order of train_set, or give {type(dataset).__name__} an attribute `labels`"
        )
    classes = _checked_classes(found, samples, sampler)
    counts = torch.bincount(classes)
    weighted = WeightedBatches(1 / counts[classes], *order) if sampler == "weighted" else None
    batches = weighted or BalancedBatches(classes, *order)
    batches.words = f"sampler    {sampler}, {len(counts)} classes of {counts.min():,} to {counts.max():,} samples"
    return batches


def corrects_twice(trainer: Trainer, module: LightningModule) -> bool:
    """Whether rare classes are drawn more often and also weighted in a loss."""
    if getattr(trainer.datamodule, "sampler", "uniform") == "uniform":  # type: ignore[attr-defined]
        return False
    for part in module.modules():
        name = "class_weights" if isinstance(part, ClassWeightedLoss) else "weight"
        if isinstance(part, (nn.CrossEntropyLoss, nn.NLLLoss)) and getattr(part, name) is not None:
            return True
    return False


def _labels_of(dataset: Any) -> NDArray[Any] | None:
    """What a dataset says of its labels, itself or through those that it is made of."""
    if isinstance(dataset, Subset):
        whole = _labels_of(dataset.dataset)
        return None if whole is None else whole[list(dataset.indices)]
    if isinstance(dataset, ConcatDataset):
        parts = [_labels_of(part) for part in dataset.datasets]
        return None if any(part is None for part in parts) else np.concatenate(parts)  # type: ignore[arg-type]
    for name in ("labels", "targets"):
        if (found := getattr(dataset, name, None)) is not None:
            return _array(found, f"{type(dataset).__name__}.{name}")
    tensors = getattr(dataset, "tensors", None)
    found = inputs_and_labels(tensors)[1] if tensors else None
    return None if found is None else found.numpy()


def _array(labels: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(labels)
    except ValueError:
        raise UserError(f"{name} must be one class for each sample (got values of unequal length)") from None


def _checked_classes(labels: Any, samples: int, sampler: str) -> Tensor:
    found = _array(labels, "train_labels")
    if found.shape != (samples,) or found.dtype.kind not in "iubUS":
        raise UserError(
            f"data.sampler={sampler} needs one class, a whole number or a word, for each of the {samples} training "
            f"samples (got {list(found.shape)} {found.dtype}): let setup of the data module assign self.train_labels"
        )
    return torch.from_numpy(np.unique(found, return_inverse=True)[1])


def _checked_weights(weights: Any, samples: int) -> Tensor:
    found = torch.as_tensor(weights, dtype=torch.float64)
    if found.shape != (samples,) or not found.isfinite().all() or (found < 0).any() or not found.any():
        raise UserError(
            f"train_weights must be {samples} numbers, one for each training sample, from 0 on and not all 0 (got "
            f"{list(found.shape)} from {float(found.min()):g} to {float(found.max()):g})"
            if found.numel()
            else f"train_weights must be {samples} numbers, one for each training sample (got none)"
        )
    return found


def _repeated_shuffles(members: Tensor, draws: int, generator: torch.Generator) -> Tensor:
    rounds = -(-draws // len(members))
    shuffles = [members[torch.randperm(len(members), generator=generator)] for _ in range(rounds)]
    return torch.cat(shuffles)[:draws] if shuffles else members[:0]
