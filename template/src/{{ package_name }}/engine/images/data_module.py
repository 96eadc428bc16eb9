"""The base of data modules of images: from a folder or a table to batches on the device."""

import logging
from typing import Any, Literal

import torch
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor

from ..data_module import DataModule
from ..errors import UserError
from ..normalisation import KEY, Normalisation
from ..run_record import read
from ..splits import stratified_split
from .augmentation import AugmentationSeed
from .dataset import ImageBatch, Images
from .decoding import BadImage
from .files import ImageFiles
from .index import ImageIndex, find_images
from .run_split import PARTS, RunSplit
from .statistics import measure
from .storages import MEMORY, as_mistake, check_name, find_bad, open_store

log = logging.getLogger(__name__)


class ImageData(DataModule):
    """Images `[B, channels, image_size, image_size]` float32, normalised, and labels `[B]` int64.

    Files are read by workers as uint8; all else happens on the device: scaling to 0..1, `augment_batch` in training,
    normalising with the training split's statistics. `model.channels_last=true` lays images out as the network.

    Args:
        root: A folder that holds one for each class, or `train`, `val` and `test` with these; or a URL for fsspec.
        num_classes: How many classes there are; checked against the images.
        image_size: Side of the square that images are brought to, in pixels.
        channels: 3 for RGB, 1 for grey.
        index: A CSV or Parquet table with the columns `path` and `label`, and perhaps `split` and `group`.
        on_bad: What happens with images that cannot be read: `error` stops at the first; `skip` reads all of them
            before a run begins, and leaves those out.
        val_share, test_share: Shares of all images for parts that folders or table do not settle.
        split_seed: Fixes the split and the images that statistics are measured on, whatever the run's own seed is.
    """

    def __init__(
        self,
        root: str,
        num_classes: int,
        image_size: int,
        channels: int = 3,
        index: str | None = None,
        on_bad: Literal["error", "skip"] = "error",
        val_share: float = 0.1,
        test_share: float = 0.1,
        split_seed: int = 0,
        **loading: Any,
    ) -> None:
        super().__init__(**loading)
        if type(image_size) is not int or image_size < 1:
            raise UserError(f"data.image_size must be a whole number of pixels from 1 (got {image_size!r})")
        if channels not in (1, 3):
            raise UserError(f"data.channels must be 3 for RGB or 1 for grey (got {channels!r})")
        if on_bad not in ("error", "skip"):
            raise UserError(f"data.on_bad must be error or skip (got {on_bad!r})")
        check_name(self.storage)
        self.root = root
        self.num_classes = num_classes
        self.image_size = image_size
        self.channels = channels
        self.index = index
        self.on_bad = on_bad
        self.val_share = val_share
        self.test_share = test_share
        self.split_seed = split_seed
        if self.storage == MEMORY and self.num_workers == "auto":
            self.num_workers = 0  # there is nothing to wait for
        self._seed_augmentation = AugmentationSeed(self.seed)
        self._split: RunSplit | None = None

    def prepare_data(self) -> None:
        """Writes the split of a run that begins into its directory, for the other processes and for later."""
        if self.run_directory is None or self.trainer is None or self.trainer.state.fn is not TrainerFn.FITTING:
            return
        if RunSplit.read(self.run_directory, self._settings()) is None:
            self._split = self._make_split()
            self._split.write(self.run_directory, self._settings())

    def setup(self, stage: str) -> None:
        if hasattr(self, "train_set"):
            return
        split = self._split or self._kept_split() or self._make_split()
        self._check_classes(split)
        log.info("images     %s", split.counts())
        files = ImageFiles(self.root, split.paths, self.image_size, self.channels)
        store = open_store(self.storage, files)
        self.class_names = split.class_names
        self.normalisation = self._kept_normalisation() or measure(store, split.places.train, self.split_seed)
        self.train_set, self.val_set, self.test_set = (
            Images(store, places, split.labels[places]) for places in split.places
        )

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        if not isinstance(batch, ImageBatch):
            return batch
        if batch.bad:
            raise as_mistake(BadImage(batch.bad[0]), len(batch.bad))
        return batch.images, batch.labels

    def on_after_batch_transfer(self, batch: tuple[Tensor, Tensor], dataloader_idx: int) -> tuple[Tensor, Tensor]:
        images, labels = batch
        module = self.trainer.lightning_module if self.trainer else None
        is_last = getattr(module, "channels_last", False)
        layout = torch.channels_last if is_last else torch.contiguous_format
        scaled = images.to(torch.float32, memory_format=layout) * (self.white / 255)
        images, labels = super().on_after_batch_transfer((scaled, labels), dataloader_idx)
        return self.preprocess(images).contiguous(memory_format=layout), labels

    def augment_batch(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        images, labels = batch
        if self.trainer is None:
            return self.augment_images(images), labels
        with self._seed_augmentation.batch_of(self.trainer):
            return self.augment_images(images), labels

    def augment_images(self, images: Tensor) -> Tensor:
        """Changes training images `[B, C, H, W]` from 0 to 1 on their device; the base leaves them as they are.

        torch's random numbers are its own here: those of the batch, the same when a run goes on.
        """
        return images

    def _settings(self) -> dict[str, Any]:
        """What decides the split."""
        names = ("index", "val_share", "test_share", "split_seed", "on_bad")
        fold = None if self.fold is None else self.fold.number
        return {**{name: getattr(self, name) for name in names}, "fold": fold, "folds": self.fold and self.fold.count}

    def _kept_split(self) -> RunSplit | None:
        if self.run_directory is None:
            return None
        kept = RunSplit.read(self.run_directory, self._settings())
        if kept is None:
            log.warning("%s keeps no split: it is made anew from the images that there are now", self.run_directory)
        return kept

    def _kept_normalisation(self) -> Normalisation | None:
        kept = read(self.run_directory).get(KEY) if self.run_directory is not None else None
        return Normalisation(**kept) if isinstance(kept, dict) and len(kept["mean"]) == self.channels else None

    def _make_split(self) -> RunSplit:
        index, bad = find_images(self.root, self.index), list[str]()
        if self.on_bad == "skip":
            index, bad = self._readable(index)
        given = None
        if index.splits is not None:
            parts = [torch.tensor([i for i, its in enumerate(index.splits) if its == part]) for part in PARTS]
            given = {part: places for part, places in zip(PARTS, parts, strict=True) if len(places)}
        shares = (self.val_share, self.test_share)
        places = stratified_split(index.labels, *shares, self.split_seed, self.fold, index.groups, given)
        return RunSplit.of(index, places, bad)

    def _readable(self, index: ImageIndex) -> tuple[ImageIndex, list[str]]:
        """The images that can be read, and what is wrong with the others."""
        log.info("images     reading all %d of them, to leave out what cannot be read", len(index.paths))
        store = ImageFiles(self.root, index.paths, self.image_size, self.channels)
        bad = find_bad(store)
        for reason in bad.values():
            log.warning("unreadable %s", reason)
        good = [place for place in range(len(index.paths)) if place not in bad]
        gone = set(range(len(index.class_names))) - set(index.labels[good].tolist())
        if gone:
            raise UserError(f"no image of the class {index.class_names[min(gone)]} can be read: {min(bad.values())}")
        return index.keep(good), list(bad.values())

    def _check_classes(self, split: RunSplit) -> None:
        if len(split.class_names) != self.num_classes:
            found = len(split.class_names)
            names = ", ".join(split.class_names[:5]) + (", …" if found > 5 else "")
            raise UserError(
                f"data.num_classes is {self.num_classes}, but the images have {found} classes ({names}): "
                f"type data.num_classes={found}"
            )
