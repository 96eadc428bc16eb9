"""Which samples each process sees, in which order, and with which random numbers."""

import random
from collections.abc import Iterator, Sequence, Sized
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler, get_worker_info

EPOCH_STRIDE = 1_000_003  # primes keep the keys of neighbouring seeds, epochs and batches apart
BATCH_STRIDE = 100_003


class SeededIndices(list[int]):
    """Indices of one batch, the seed of the random numbers that loading it may draw, and its place in the training."""

    seed: int = 0
    epoch: int = 0
    batch: int = 0


class TrainingBatches(Sampler[list[int]]):
    """Batches in an order that is a function of (seed, epoch): independent of workers, devices and validation.

    Every epoch is cut into global batches of `batch_size * world_size`; rank r takes each `world_size`-th sample from
    the r-th on, so that one process and several see the same global batches. The tail that does not fill
    `accumulate` global batches is left out: every optimizer step averages over the same number of samples.

    Args:
        samples: Number of samples in the training set.
        batch_size: Samples per rank and batch.
        seed: With the epoch, the key of the order.
        rank, world_size: Which share of each global batch is this process's.
        accumulate: Batches per optimizer step.
        shuffle: False makes all epochs alike, in the order of the dataset.

    Attributes:
        dropped: Samples that fill no optimizer step.
        words: A line for people about what is unusual in them.
    """

    words: str = ""

    def __init__(
        self,
        samples: int,
        batch_size: int,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
        accumulate: int = 1,
        shuffle: bool = True,
    ) -> None:
        self.samples = samples
        self.batch_size = batch_size
        self.seed = seed
        self.rank = rank
        self.world_size = world_size
        self.shuffle = shuffle
        self.batches = samples // (batch_size * world_size * accumulate) * accumulate
        self.dropped = samples - self.batches * batch_size * world_size
        self.generator = torch.Generator()  # the loader's: it seeds the workers and leaves the global one alone
        self.epoch, self.done = -1, 0
        self.sampler = self  # Lightning calls `set_epoch` on a batch sampler's `sampler` only
        self.set_epoch(0)

    def set_epoch(self, epoch: int, done: int = 0) -> None:
        """Chooses the order, without the batches that a resumed epoch has `done`, also when the epoch is set again."""
        if epoch != self.epoch or done:
            self.epoch, self.done = epoch, done
            self.generator.manual_seed(self._key)

    @property
    def _key(self) -> int:
        return (self.seed * EPOCH_STRIDE + self.epoch) % 2**63

    @property
    def taken(self) -> int:
        """Samples of an epoch, over all ranks."""
        return self.batches * self.batch_size * self.world_size

    def __len__(self) -> int:
        return self.batches

    def order(self) -> Sequence[int]:
        """Indices of the samples of an epoch, global batch by global batch."""
        if not self.shuffle:
            return range(self.samples)
        return torch.randperm(self.samples, generator=self.order_generator()).tolist()

    def order_generator(self) -> torch.Generator:
        """Random numbers that are new in every epoch, or the same ones where epochs are to be alike."""
        return torch.Generator().manual_seed(self._key if self.shuffle else self.seed % 2**63)

    def __iter__(self) -> Iterator[list[int]]:
        order = self.order()
        size = self.batch_size * self.world_size
        for batch in range(self.done, self.batches):
            indices = SeededIndices(order[batch * size : (batch + 1) * size][self.rank :: self.world_size])
            indices.seed = ((self._key * BATCH_STRIDE + batch) * self.world_size + self.rank) % 2**63
            indices.epoch, indices.batch = self.epoch, batch
            yield indices


class EvaluationShare(Sampler[int]):
    """Every `world_size`-th sample from the rank-th on, none twice: metrics over all ranks are exact.

    Lightning refuses a loader of length 0, so a rank without samples reports a length of 1 and yields nothing.
    """

    def __init__(self, samples: int, rank: int = 0, world_size: int = 1) -> None:
        self.indices = range(rank, samples, world_size)

    def __len__(self) -> int:
        return max(1, len(self.indices))

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)


class SeededDataset(Dataset[Any]):
    """Seeds a worker's random numbers for each batch: the same with any number of workers, persistent or not."""

    def __init__(self, dataset: Dataset[Any]) -> None:
        self.dataset = dataset
        self.fetch_batch = getattr(dataset, "__getitems__", None)

    def __len__(self) -> int:
        assert isinstance(self.dataset, Sized)
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[index]

    def __getitems__(self, indices: list[int]) -> Any:
        if isinstance(indices, SeededIndices):
            seed_worker(indices.seed)
        if self.fetch_batch is not None:
            return self.fetch_batch(indices)
        return [self.dataset[index] for index in indices]


def seed_worker(seed: int) -> None:
    """Seeds the random numbers of a process that loads data, and leaves those of a training process alone."""
    if get_worker_info() is not None:
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002, what a user's dataset may draw from
        random.seed(seed)
