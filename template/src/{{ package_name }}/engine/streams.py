"""Datasets that are read from their beginning on, without indices: streams, and data larger than memory."""

import logging
from collections.abc import Iterator
from itertools import islice
from typing import Any

from lightning.pytorch import Trainer
from lightning.pytorch.utilities.seed import isolate_rng
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from .errors import UserError
from .resume import training_position
from .sampling import EPOCH_STRIDE, SeededDataset, SeededIndices, TrainingBatches, seed_worker

SHARE = "def share(self, number, count): return itertools.islice(self, number, None, count)"

log = logging.getLogger(__name__)


class OncePerReader(IterableDataset[Any]):
    """A stream from its beginning to its end, of which every process reads its own part.

    Args:
        stream: With `share(number, count)`, an iterable over part `number` of `count`; with `splits_itself = True`, of
            which every process reads what its `__iter__` gives there; or for one process only.
        rank, world_size: Which of the processes that train this one is, or is a worker of.
    """

    def __init__(self, stream: Any, rank: int, world_size: int) -> None:
        self.stream = stream
        self.rank, self.world_size = rank, world_size

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        return self.part(worker.id if worker else 0)

    def part(self, reader: int) -> Iterator[Any]:
        """What one of the readers of this rank reads."""
        worker = get_worker_info()
        readers = worker.num_workers if worker else 1
        count = self.world_size * readers
        if count == 1 or getattr(self.stream, "splits_itself", False):
            return iter(self.stream)
        return iter(self.stream.share(self.rank * readers + reader, count))


class EndlessStream(Dataset[Any]):
    """Batches of a stream for training: it goes on where the last batch ended, and begins again at its end.

    An epoch is a number of batches, the same for every rank, whatever the stream holds. Batch b of an epoch comes from
    reader b modulo the number of readers. Where that one stands follows from epoch and batch alone: a process that
    stands elsewhere, as after a resume, reads up to it. A stream with `set_epoch(number)` is told how often it has
    ended before it begins.

    Args:
        parts: The stream, with this rank's share in it.
        batches: Of an epoch.
        seed: Key of random numbers at the beginning of the stream.
        goes_on: False begins the stream anew in every epoch: all epochs are alike.
    """

    def __init__(self, parts: OncePerReader, batches: int, seed: int, goes_on: bool = True) -> None:
        self.parts = parts
        self.batches = batches
        self.seed = seed
        self.goes_on = goes_on
        self.reader, self.done = -1, 0  # whose part is open in this process, and how many batches of it were read
        self.samples: Iterator[Any] = iter(())

    def __len__(self) -> int:
        raise UserError(f"{type(self.parts.stream).__name__} is a stream, which has no length")

    def __getitems__(self, indices: SeededIndices) -> list[Any]:
        worker = get_worker_info()
        readers = worker.num_workers if worker else 1
        turn, reader = divmod(indices.batch, readers)
        before = self.goes_on * indices.epoch * len(range(reader, self.batches, readers)) + turn
        if reader != self.reader or before < self.done:
            self.reader, self.done, self.samples = reader, 0, self._endless(reader)
        if before > self.done:
            with isolate_rng():
                for _ in islice(self.samples, (before - self.done) * len(indices)):
                    pass
            seed_worker(indices.seed)
        self.done = before + 1
        return list(islice(self.samples, len(indices)))

    def _endless(self, reader: int) -> Iterator[Any]:
        stream, turn = self.parts.stream, 0
        while True:
            seed_worker((self.seed * EPOCH_STRIDE + turn) % 2**63)
            if hasattr(stream, "set_epoch"):
                stream.set_epoch(turn)
            is_empty = True
            for sample in self.parts.part(reader):
                is_empty = False
                yield sample
            if is_empty:
                raise UserError(
                    f"{type(stream).__name__} has no sample for one of the processes that read it: look at what it "
                    "reads, or type data.num_workers=1"
                )
            turn += 1


def training_stream(
    parts: OncePerReader, trainer: Trainer, batch_size: int, seed: int, goes_on: bool
) -> tuple[SeededDataset, TrainingBatches]:
    """The stream as a training reads it, and its batches, of which those that a resumed training has done are left out.

    Raises:
        UserError: nobody has said how long an epoch is.
    """
    name, world_size = type(parts.stream).__name__, parts.world_size
    length = batches_of_an_epoch(parts.stream, trainer)
    samples = length * batch_size * world_size
    batches = TrainingBatches(samples, batch_size, seed, parts.rank, world_size, shuffle=False)
    epoch, done = training_position(trainer)
    batches.set_epoch(epoch, done)
    how = "goes on from one epoch to the next" if goes_on else "begins anew in every epoch (data.shuffle=false)"
    batches.words = f"stream     {name}, {how}"
    if (again := (goes_on * epoch * length + done) * batch_size * world_size) and trainer.is_global_zero:
        log.info("stream     the %s samples that are done are read again, without a step, to go on behind them", again)
    return SeededDataset(EndlessStream(parts, length, seed, goes_on)), batches


def batches_of_an_epoch(stream: object, trainer: Trainer) -> int:
    """As many as `trainer.limit_train_batches`, or else as `trainer.max_steps` takes in all.

    Raises:
        UserError: neither of them is a number of batches or steps.
    """
    limit = trainer.limit_train_batches
    if isinstance(limit, int):
        return limit
    if trainer.max_steps > 0 and limit == 1:
        return trainer.max_steps * trainer.accumulate_grad_batches
    found = f"trainer.limit_train_batches={limit}, trainer.max_steps={trainer.max_steps}"
    raise UserError(
        f"{type(stream).__name__} is a stream, for which somebody has to say how long an epoch is: type "
        f"++trainer.limit_train_batches=1000 for so many batches, or trainer.max_steps=1000 for one epoch of so many "
        f"steps (got {found})"
    )


def workers_for(stream: object, workers: int, is_chosen: bool, world_size: int) -> int:
    """How many processes read a stream for each rank: one, if it does not say what each of several is to read.

    Raises:
        UserError: there are to be several.
    """
    if hasattr(stream, "share") or getattr(stream, "splits_itself", False):
        return workers
    if not is_chosen:
        workers = min(workers, 1)
    if world_size * max(workers, 1) > 1:
        cure = "trainer.devices=1 data.num_workers=1" if world_size > 1 else "data.num_workers=1"
        raise UserError(
            f"every one of {world_size * max(workers, 1)} processes would read all of {type(stream).__name__}: type "
            f"{cure}, write `{SHARE}` into it, or splits_itself = True if its __iter__ does it"
        )
    return workers


def refuse_sampler(stream: object, sampler: str) -> None:
    """Raises UserError where `data.sampler` would have to choose among samples that nobody knows yet."""
    if sampler != "uniform":
        raise UserError(
            f"data.sampler={sampler} chooses samples by number, but {type(stream).__name__} is a stream: type "
            "data.sampler=uniform, and draw rare classes more often in its __iter__, or weight them in the loss"
        )
