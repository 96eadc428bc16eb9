"""What the samples of a split are like: how many of each label, which values, and which ones exactly."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from .errors import UserError
from .first_batch import describe
from .normalisation import stated_by
from .sampling import SeededDataset

MOST_LABELS = 30  # in a table
MOST_CHANNELS = 16  # a second dimension that is longer holds no channels


class SplitFacts(NamedTuple):
    """What was read of a split.

    Attributes:
        name: `train`, `val` or `test`.
        size: Samples in the split; None where nobody knows.
        read: Samples that were read.
        labels: How often each label occurs; empty where labels are no whole numbers.
        channels: Mean, deviation, least and largest value of each channel, `[4, C]` float64.
        fingerprints: Hashes of the inputs as they were loaded.
    """

    name: str
    size: int | None
    read: int
    labels: Counter[int]
    channels: Tensor
    fingerprints: set[bytes]


def inputs_and_labels(batch: Any) -> tuple[Tensor, Tensor | None]:
    """The first tensor of a batch, and the second one if it holds a whole number for each sample.

    Raises:
        UserError: the batch holds no tensor.
    """
    parts = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else [batch]
    tensors = [part for part in parts if isinstance(part, Tensor) and part.ndim]
    if not tensors:
        raise UserError(f"a batch is {describe(batch)}: its first tensor is looked at, and there is none")
    inputs, labels = tensors[0], tensors[1] if len(tensors) > 1 else None
    if labels is None or labels.is_floating_point() or labels.shape != inputs.shape[:1]:
        return inputs, None
    return inputs, labels.long()


def size_of(loader: Any) -> int | None:
    """The number of samples behind a loader of `engine.data_module`; another one may leave out what it likes."""
    dataset = getattr(loader, "dataset", None)
    return len(dataset) if isinstance(dataset, SeededDataset) else None


def drawn(loader: Any, batch_size: int, limit: int) -> Iterator[Any]:
    """Batches of `limit` samples from all over the split, each time the same, without the loader's shuffling.

    Of a loader that the data module made itself they are the first ones, in its own order.
    """
    if (size := size_of(loader)) is None:
        return iter(loader)
    chosen = torch.randperm(size, generator=torch.Generator().manual_seed(0))[:limit].sort().values.tolist()
    return iter(DataLoader(loader.dataset, batch_size, sampler=chosen, collate_fn=loader.collate_fn))


def read_split(name: str, loader: Any, transfer: Callable[[Any], Any], batch_size: int, limit: int) -> SplitFacts:
    """Reads up to `limit` samples; `transfer` makes what the network gets of a batch as it was loaded."""
    read, labels, fingerprints = 0, Counter[int](), set[bytes]()
    measured: list[tuple[int, Tensor]] = []
    for batch in drawn(loader, batch_size, limit):
        inputs = inputs_and_labels(batch)[0]
        for row in inputs.reshape(len(inputs), -1).contiguous().view(torch.uint8).numpy():
            fingerprints.add(hashlib.blake2b(row, digest_size=16).digest())
        seen, numbers = inputs_and_labels(transfer(batch))
        if numbers is not None:
            labels.update(numbers.tolist())
        measured.append(_measure(seen.cpu()))
        read += len(inputs)
        if read >= limit:
            break
    return SplitFacts(name, size_of(loader), read, labels, _combine(measured), fingerprints)


def _measure(inputs: Tensor) -> tuple[int, Tensor]:
    """The number of values in a channel, and their mean, variance, least and largest."""
    has_channels = inputs.ndim > 2 and inputs.shape[1] <= MOST_CHANNELS
    values = (inputs.transpose(0, 1).flatten(1) if has_channels else inputs.reshape(1, -1)).double()
    variance, mean = torch.var_mean(values, dim=1, correction=0)
    return values.shape[1], torch.stack((mean, variance, values.amin(1), values.amax(1)))


def _combine(measured: list[tuple[int, Tensor]]) -> Tensor:
    if not measured:
        return torch.empty(4, 0)
    counts = torch.tensor([count for count, _ in measured], dtype=torch.float64)
    weights = counts / counts.sum()
    means, variances, least, most = torch.stack([part for _, part in measured], dim=1)
    mean = weights @ means
    std = (weights @ (variances + (means - mean) ** 2)).sqrt()
    return torch.stack((mean, std, least.amin(0), most.amax(0)))


def label_table(splits: list[SplitFacts], labels: list[int], name: Callable[[int], str]) -> str:
    """How many samples of each label were read, in a column for each split."""
    rows = [["label", *(split.name for split in splits)], ["all", *(f"{split.read:,}" for split in splits)]]
    rows += [[name(label), *(f"{split.labels[label]:,}" for split in splits)] for label in labels[:MOST_LABELS]]
    rest = len(labels) - MOST_LABELS
    return _table(rows) + (f"\nand {rest} labels more, in labels.png" if rest > 0 else "")


def value_table(splits: list[SplitFacts], data: object) -> str:
    """Statistics of what the network gets and, where the data module states its normalisation, of what was before."""
    rows = [["inputs", "channel", "mean", "std", "min", "max"]]
    for split in splits:
        tables = {split.name: split.channels}
        if (stated := stated_by(data)) is not None and len(stated.mean) == split.channels.shape[1]:
            mean, std = torch.tensor(stated, dtype=torch.float64)
            tables[f"{split.name} before"] = split.channels * std + mean * torch.tensor([[1], [0], [1], [1]])
        for title, channels in tables.items():
            numbers = [[f"{round(value, 4) + 0.0:.4f}" for value in channel] for channel in channels.T.tolist()]
            rows += [[title, str(channel), *cells] for channel, cells in enumerate(numbers)]
    return _table(rows)


def _table(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ([first.ljust(widths[0]), *map(str.rjust, cells, widths[1:])] for first, *cells in rows)
    return "\n".join("  ".join(line) for line in lines)
