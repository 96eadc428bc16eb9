"""The base of every LightningDataModule: it turns three datasets into loaders."""

import time
from collections.abc import Sequence, Sized
from typing import Any, Literal, NamedTuple

import torch
from lightning.pytorch import LightningDataModule
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, Sampler, default_collate

from .cores import loader_workers
from .errors import UserError
from .normalisation import Normalisation
from .resume import training_position
from .sampling import EvaluationShare, SeededDataset, TrainingBatches
from .stop import outlive_stop

Auto = Literal["auto"]


class Fold(NamedTuple):
    """One of `count` parts of k-fold cross-validation, counted from 0."""

    number: int
    count: int


class DataModule(LightningDataModule):
    """Loads the datasets that a subclass assigns in `setup`: `train_set`, `val_set`, `test_set`.

    A dataset needs `__len__` and `__getitem__`. One that also has `__getitems__(indices)` is read a batch at a time:
    it returns a list of samples, or the finished batch (anything but a list), which is then not collated.

    Args:
        batch_size: Samples per device and step.
        num_workers: Processes that load data; `auto` is the cores of this machine, shared by its devices, at most 8.
        pin_memory: Copies batches to pinned memory; `auto` does when a GPU trains.
        prefetch_factor: Batches that each worker loads ahead; `auto` is 2.
        shuffle: A new order in every training epoch.
        augment: Calls `augment_batch` on training batches.
        seed: Key of the order and of random numbers in workers.
        global_batch_size: Samples of one optimizer step; `engine.batch_size` makes `batch_size` of it for training.
        fold, folds: Which part validates in cross-validation, from 0, and how many there are; null: no folds.

    Attributes:
        class_names: What people call the classes, in the order of their numbers; `setup` may state them.
        normalisation: What the inputs were normalised with; `setup` may state it, and the run then keeps it.
        white: What the brightest value of a uint8 image, 255, stands for in the unit of `normalisation`.
    """

    train_set: Dataset[Any]
    val_set: Dataset[Any]
    test_set: Dataset[Any]
    class_names: Sequence[str] | None = None
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
        fold: int | None = None,
        folds: int = 5,
    ) -> None:
        super().__init__()
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
            images: `[B, C, H, W]`; uint8 is scaled from 0..255 to 0..`white`, floating numbers are in that unit.

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
        return default_collate(samples)

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
        samples = _length(self.train_set, "training")
        rank, world_size = self._place()
        accumulate = self.trainer.accumulate_grad_batches if self.trainer else 1
        batches = TrainingBatches(samples, self.batch_size, self.seed, rank, world_size, accumulate, self.shuffle)
        if not len(batches):
            raise UserError(
                f"no training step fits: data.batch_size={self.batch_size} × {world_size} devices × "
                f"trainer.accumulate_grad_batches={accumulate} is more than the {samples} training samples: type "
                + _what_fits(samples, self.batch_size, world_size, accumulate)
            )
        if self.trainer:  # Lightning tells the sampler of an epoch after it has started the workers
            batches.set_epoch(*training_position(self.trainer))
        return self._loader(self.train_set, batches, batches.generator)

    def val_dataloader(self) -> DataLoader[Any]:
        return self._evaluation_loader(self.val_set, "validation")

    def test_dataloader(self) -> DataLoader[Any]:
        return self._evaluation_loader(self.test_set, "test")

    def _evaluation_loader(self, dataset: Dataset[Any], split: str) -> DataLoader[Any]:
        share = EvaluationShare(_length(dataset, split), *self._place())
        batches = BatchSampler(share, self.batch_size, drop_last=False)
        return self._loader(dataset, batches, torch.Generator().manual_seed(self.seed))

    def _place(self) -> tuple[int, int]:
        """Rank and number of processes; a data module without a trainer serves one process, as in a notebook."""
        return (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)

    def _loader(
        self, dataset: Dataset[Any], batches: Sampler[list[int]], generator: torch.Generator
    ) -> DataLoader[Any]:
        trainer = self.trainer
        workers = self.num_workers
        if workers == "auto":
            workers = loader_workers(max(1, trainer.world_size // trainer.num_nodes) if trainer else 1)
        prefetch = 2 if self.prefetch_factor == "auto" else self.prefetch_factor
        on_gpu = trainer is not None and trainer.strategy.root_device.type == "cuda"
        return DataLoader(
            SeededDataset(dataset),
            batch_sampler=batches,
            generator=generator,
            num_workers=workers,
            pin_memory=on_gpu if self.pin_memory == "auto" else self.pin_memory,
            persistent_workers=workers > 0,
            prefetch_factor=prefetch if workers else None,
            collate_fn=self._collate_unless_finished,
            worker_init_fn=outlive_stop,
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
    assert isinstance(dataset, Sized)
    if not len(dataset):
        raise UserError(f"the {split} set is empty: check the data's path and split")
    return len(dataset)
