"""What the samples of a split are like: how many of each label, which values, and which ones exactly."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from .errors import UserError
from .first_batch import describe
from .normalisation import Normalisation, stated_by
from .sampling import SeededDataset

MOST_LABELS = 30  # in a table, an even number
IDS = (torch.int16, torch.int32, torch.int64)
MOST_CHANNELS = 16  # a second dimension that is longer holds no channels


class SplitFacts(NamedTuple):
    """What was read of a split.

    Attributes:
        name: `train`, `val` or `test`.
        size: Samples in the split; None where nobody knows.
        read: Samples that were read.
        labels: How often each label occurs; empty where labels are no whole numbers.
        loaded: Mean, deviation, least and largest value of each channel as it was loaded, `[4, C]` float64.
        channels: The same of what the network gets.
        fingerprints: Hashes of the inputs as they were loaded, each with the samples that it belongs to: their indices
            in the dataset, or None where a batch does not hold one row for each sample.
        are_ids: Whether the network gets whole numbers of more than a byte, such as those of words.
    """

    name: str
    size: int | None
    read: int
    labels: Counter[int]
    loaded: Tensor
    channels: Tensor
    fingerprints: dict[bytes, list[int | None]]
    are_ids: bool = False


def inputs_and_labels(batch: Any) -> tuple[Tensor, Tensor | None]:
    """The first tensor of a batch that is more than a whole number for each sample, and the first that is no more.

    Where all are whole numbers for each sample, the inputs come first.

    Raises:
        UserError: the batch holds no tensor.
    """
    parts = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else [batch]
    tensors = [part for part in parts if isinstance(part, Tensor) and part.ndim]
    if not tensors:
        raise UserError(f"a batch is {describe(batch)}: its first tensor is looked at, and there is none")
    inputs = next((part for part in tensors if part.ndim > 1 or part.is_floating_point()), tensors[0])
    for part in tensors:
        if part is not inputs and not part.is_floating_point() and part.shape == inputs.shape[:1]:
            return inputs, part.long()
    return inputs, None


def size_of(loader: Any) -> int | None:
    """The number of samples behind a loader of `engine.data_module`; another one may leave out what it likes."""
    dataset = getattr(loader, "dataset", None)
    return len(dataset) if isinstance(dataset, SeededDataset) else None


def drawn(loader: Any, batch_size: int, limit: int) -> Iterator[Any]:
    """Batches of `limit` samples from all over the split, each time the same, without the loader's shuffling.

    Of a loader that the data module made itself they are the first ones, in its own order.
    """
    if (indices := _indices(loader, limit)) is None:
        return iter(loader)
    return iter(DataLoader(loader.dataset, batch_size, sampler=indices, collate_fn=loader.collate_fn))


def _indices(loader: Any, limit: int) -> list[int] | None:
    if (size := size_of(loader)) is None:
        return None
    return torch.randperm(size, generator=torch.Generator().manual_seed(0))[:limit].sort().values.tolist()


def read_split(name: str, loader: Any, transfer: Callable[[Any], Any], batch_size: int, limit: int) -> SplitFacts:
    """Reads up to `limit` samples; `transfer` makes what the network gets of a batch as it was loaded."""
    read, labels, are_ids = 0, Counter[int](), False
    hashes: list[bytes] = []
    loaded: list[tuple[int, Tensor]] = []
    measured: list[tuple[int, Tensor]] = []
    indices = _indices(loader, limit)
    for batch in drawn(loader, batch_size, limit):
        inputs = inputs_and_labels(batch)[0]
        for row in inputs.reshape(len(inputs), -1).contiguous().view(torch.uint8).numpy():
            hashes.append(hashlib.blake2b(row, digest_size=16).digest())
        loaded.append(_measure(inputs))
        seen, numbers = inputs_and_labels(transfer(batch))
        if numbers is not None:
            labels.update(numbers.tolist())
        measured.append(_measure(seen.cpu()))
        are_ids = seen.dtype in IDS
        read += len(inputs)
        if read >= limit:
            break
    fingerprints: dict[bytes, list[int | None]] = {}
    places = indices if indices is not None and len(indices) == len(hashes) else repeat(None)
    for key, place in zip(hashes, places, strict=False):
        fingerprints.setdefault(key, []).append(place)
    return SplitFacts(name, size_of(loader), read, labels, _combine(loaded), _combine(measured), fingerprints, are_ids)


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
    head = [["label", *(split.name for split in splits)], ["all", *(f"{split.read:,}" for split in splits)]]
    half = MOST_LABELS // 2
    if (between := len(labels) - MOST_LABELS) > 0:
        labels = sorted(labels, key=lambda label: -splits[0].labels[label])
    rows = [[name(label), *(f"{split.labels[label]:,}" for split in splits)] for label in labels]
    if between > 0:
        rows[half:-half] = [[f"… {between} labels between, in labels.png", *("" for _ in splits)]]
    return _table(head + rows)


def value_table(splits: list[SplitFacts], data: object) -> str:
    """Statistics of what the network gets and, where it differs, of what was there before the normalisation."""
    rows = [["inputs", "channel", "mean", "std", "min", "max"]]
    for split in splits:
        tables = {split.name: split.channels}
        if (before := _before(split, stated_by(data))) is not None:
            tables[f"{split.name} before"] = before
        for title, channels in tables.items():
            numbers = [[f"{round(value, 4) + 0.0:.4f}" for value in channel] for channel in channels.T.tolist()]
            rows += [[title, str(channel), *cells] for channel, cells in enumerate(numbers)]
    return _table(rows)


def _before(split: SplitFacts, stated: Normalisation | None) -> Tensor | None:
    """What was loaded, if the network gets other values; else what the data module normalised, if it says how."""
    loaded, channels = split.loaded, split.channels
    if loaded.shape != channels.shape or not torch.allclose(loaded, channels, equal_nan=True):
        return loaded
    if stated is None or len(stated.mean) != channels.shape[1]:
        return None
    mean, std = torch.tensor(stated, dtype=torch.float64)
    return channels * std + mean * torch.tensor([[1], [0], [1], [1]])


def _table(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ([first.ljust(widths[0]), *map(str.rjust, cells, widths[1:])] for first, *cells in rows)
    return "\n".join("  ".join(line) for line in lines)
