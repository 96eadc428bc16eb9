"""The base of every LightningDataModule: it turns three datasets into loaders."""

import time
from collections.abc import Sequence, Sized
from typing import Any, Literal, NamedTuple

import torch
from lightning.pytorch import LightningDataModule
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset

from .class_sampling import SAMPLERS, training_batches
from .class_sampling import Sampler as ClassSampler
from .collation import collate
from .cores import loader_workers
from .errors import UserError
from .normalisation import Normalisation
from .resume import training_position
from .sampling import EvaluationShare, SeededDataset
from .stop import outlive_stop
from .streams import OncePerReader, refuse_sampler, training_stream, workers_for

Auto = Literal["auto"]


class Fold(NamedTuple):
    """One of `count` parts of k-fold cross-validation, counted from 0."""

    number: int
    count: int


class DataModule(LightningDataModule):
    """Loads the datasets that a subclass assigns in `setup`: `train_set`, `val_set`, `test_set`.

    A dataset needs `__len__` and `__getitem__`. One that also has `__getitems__(indices)` is read a batch at a time:
    it returns a list of samples, or the finished batch (anything but a list), which is then not collated. A torch
    `IterableDataset` is a stream, which `engine.streams` reads.

    Args:
        batch_size: Samples per device and step.
        num_workers: Processes that load data; `auto` is the cores of this machine, shared by its devices, at most 8.
        pin_memory: Copies batches to pinned memory; `auto` does when a GPU trains.
        prefetch_factor: Batches that each worker loads ahead; `auto` is 2.
        shuffle: A new order in every training epoch.
        augment: Calls `augment_batch` on training batches.
        seed: Key of the order and of random numbers in workers.
        global_batch_size: Samples of one optimizer step; `engine.batch_size` makes `batch_size` of it for training.
        sampler: `uniform` shows each training sample once an epoch; `weighted` draws with replacement, samples of rare
            classes more often; `balanced` shows every class equally often.
        fold, folds: Which part validates in cross-validation, from 0, and how many there are; null: no folds.

    Attributes:
        class_names: What people call the classes, in the order of their numbers; `setup` may state them.
        train_labels: The class of each sample of `train_set`; `setup` may state it for a `sampler` other than
            `uniform`, which otherwise looks for `labels` or `targets` of the dataset.
        train_weights: For `sampler=weighted`, that of each sample of `train_set` in place of inverse class frequencies.
        normalisation: What the inputs were normalised with; `setup` may state it, and the run then keeps it.
        white: What the brightest value of a uint8 image, 255, stands for in the unit of `normalisation`.
    """

    train_set: Dataset[Any]
    val_set: Dataset[Any]
    test_set: Dataset[Any]
    class_names: Sequence[str] | None = None
    train_labels: Any = None
    train_weights: Any = None
    normalisation: Normalisation | None = None
    white: float = 1.0

    def __init__(
        self,
        batch_size: int = 64,
        num_workers: int | Auto = "auto",
        pin_memory: bool | Auto = "auto",
        prefetch_factor: int | Auto = "auto",
        shuffle: bool = True,
        augment: bool = True,
        seed: int = 0,
        global_batch_size: int | None = None,
        sampler: ClassSampler = "uniform",
        fold: int | None = None,
        folds: int = 5,
    ) -> None:
        super().__init__()
        if sampler not in SAMPLERS:
            raise UserError(f"data.sampler must be {', '.join(SAMPLERS[:-1])} or {SAMPLERS[-1]} (got {sampler!r})")
        if fold is not None and folds < 2:
            raise UserError(f"data.folds must be at least 2: one part validates, the others train (got {folds})")
        if fold is not None and not 0 <= fold < folds:
            raise UserError(f"data.fold must be from 0 to {folds - 1}, below data.folds={folds} (got {fold})")
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.prefetch_factor = prefetch_factor
        self.shuffle = shuffle
        self.augment = augment
        self.seed = seed
        self.sampler: ClassSampler = sampler
        self.seconds_augmenting = 0.0  # in this process, without waiting for a GPU
        self._fold = None if fold is None else Fold(fold, folds)
        self._knows_folds = fold is None

    @property
    def fold(self) -> Fold | None:
        """The part that validates; `setup` splits the samples by it, as `splits.stratified_split` does."""
        self._knows_folds = True
        return self._fold

    def preprocess(self, images: Tensor) -> Tensor:
        """Makes images what the network takes, in training, validation and in what is exported.

        Args:
            images: `[B, C, H, W]`; uint8 is scaled from 0..255 to 0..`white`, floating numbers are in that unit already.

        Returns:
            float32 `[B, C, H, W]`, normalised where the data module states a `normalisation`.
        """
        values = images.float() * (self.white / 255) if images.dtype == torch.uint8 else images.float()
        return values if self.normalisation is None else self.normalisation(values)

    def augment_batch(self, batch: Any) -> Any:
        """Changes a training batch on its device; the base leaves it as it is."""
        return batch

    def collate(self, samples: list[Any]) -> Any:
        """Makes a batch of samples; override it for samples of unequal size."""
        return collate(samples)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        if device.type == "cpu":  # it lies there already; Lightning would look at every tensor
            return batch
        return super().transfer_batch_to_device(batch, device, dataloader_idx)

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        if self.augment and self.trainer is not None and self.trainer.training:
            began = time.perf_counter()
            batch = self.augment_batch(batch)
            self.seconds_augmenting += time.perf_counter() - began
        return batch

    def train_dataloader(self) -> DataLoader[Any]:
        if not self._knows_folds:
            raise UserError(
                f"data.fold is set, but {type(self).__name__}.setup never reads self.fold: every fold would train on "
                "the same samples; leave data.fold out, or split with engine.splits.stratified_split"
            )
        if isinstance(self.train_set, IterableDataset):
            return self._train_on_stream(self.train_set)
        samples = _length(self.train_set, "training")
        rank, world_size = self._place()
        accumulate = self.trainer.accumulate_grad_batches if self.trainer else 1
        batches = training_batches(
            self.sampler,
            self.train_set,
            self.train_labels,
            self.train_weights,
            *(samples, self.batch_size, self.seed, rank, world_size, accumulate, self.shuffle),
        )
        if not len(batches):
            raise UserError(
                f"no training step fits: data.batch_size={self.batch_size} × {world_size} devices × "
                f"trainer.accumulate_grad_batches={accumulate} is more than the {samples} training samples: type "
                + _what_fits(samples, self.batch_size, world_size, accumulate)
            )
        if self.trainer:  # Lightning tells the sampler of an epoch after it has started the workers
            batches.set_epoch(*training_position(self.trainer))
        return self._loader(SeededDataset(self.train_set), batches.generator, batch_sampler=batches)

    def _train_on_stream(self, stream: IterableDataset[Any]) -> DataLoader[Any]:
        refuse_sampler(stream, self.sampler)
        parts = OncePerReader(stream, *self._place())
        if self.trainer is None or not self.trainer.state.fn:  # somebody looks at the samples
            return self._loader(parts, torch.Generator(), stream, batch_size=self.batch_size, drop_last=True)
        dataset, batches = training_stream(parts, self.trainer, self.batch_size, self.seed, goes_on=self.shuffle)
        return self._loader(dataset, batches.generator, stream, batch_sampler=batches)

    def val_dataloader(self) -> DataLoader[Any]:
        return self._evaluation_loader(self.val_set, "validation")

    def test_dataloader(self) -> DataLoader[Any]:
        return self._evaluation_loader(self.test_set, "test")

    def _evaluation_loader(self, dataset: Dataset[Any], split: str) -> DataLoader[Any]:
        generator = torch.Generator().manual_seed(self.seed)
        if isinstance(dataset, IterableDataset):
            parts = OncePerReader(dataset, *self._place())
            return self._loader(parts, generator, dataset, batch_size=self.batch_size)
        share = EvaluationShare(_length(dataset, split), *self._place())
        batches = BatchSampler(share, self.batch_size, drop_last=False)
        return self._loader(SeededDataset(dataset), generator, batch_sampler=batches)

    def _place(self) -> tuple[int, int]:
        """Rank and number of processes; a data module without a trainer serves one process, as in a notebook."""
        return (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)

    def _loader(
        self, dataset: Dataset[Any], generator: torch.Generator, stream: object = None, **batching: Any
    ) -> DataLoader[Any]:
        trainer = self.trainer
        workers = self.num_workers
        if workers == "auto":
            workers = loader_workers(max(1, trainer.world_size // trainer.num_nodes) if trainer else 1)
        if stream is not None:
            workers = workers_for(stream, workers, self.num_workers != "auto", self._place()[1])
        prefetch = 2 if self.prefetch_factor == "auto" else self.prefetch_factor
        on_gpu = trainer is not None and trainer.strategy.root_device.type == "cuda"
        return DataLoader(
            dataset,
            generator=generator,
            num_workers=workers,
            pin_memory=on_gpu if self.pin_memory == "auto" else self.pin_memory,
            persistent_workers=workers > 0,
            prefetch_factor=prefetch if workers else None,
            collate_fn=self._collate_unless_finished,
            worker_init_fn=outlive_stop,
            **batching,
        )

    def _collate_unless_finished(self, samples: Any) -> Any:
        return self.collate(samples) if isinstance(samples, list) else samples


def _what_fits(samples: int, batch_size: int, world_size: int, accumulate: int) -> str:
    cures = []
    if most := samples // (batch_size * world_size):
        cures.append(f"trainer.accumulate_grad_batches={most}")
    if largest := samples // (world_size * accumulate):
        whole = largest * world_size * accumulate
        cures.append(f"data.batch_size={largest} (data.global_batch_size={whole} where that is set)")
    if cures:
        return " or ".join(cures)
    fewer = "" if samples >= world_size else f"trainer.devices={samples} "
    return f"{fewer}data.batch_size=1 trainer.accumulate_grad_batches={max(1, samples // world_size)}"


def _length(dataset: Dataset[Any], split: str) -> int:
    if not isinstance(dataset, Sized):
        raise UserError(
            f"the {split} set {type(dataset).__name__} has no __len__: write one, or make it a torch IterableDataset"
        )
    if not len(dataset):
        raise UserError(f"the {split} set is empty: check the data's path and split")
    return len(dataset)
