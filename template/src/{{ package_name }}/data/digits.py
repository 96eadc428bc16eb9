"""Handwritten digits: 1,797 images of 8×8 pixels that ship with scikit-learn."""

from typing import Any

import torch
from kornia.augmentation import RandomAffine
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor

from ..engine.batched_tensors import BatchedTensors
from ..engine.data_module import DataModule
from ..engine.errors import UserError


class Digits(DataModule):
    """Images `[B, 1, 8, 8]` float32, normalised with the training split's mean and deviation, and labels `[B]` int64.

    Args:
        num_classes, channels, image_size: What the model is told about the data; checked against it.
        val_share, test_share: Shares of all samples; every split holds each class in the same proportion.
        split_seed: Fixes the split, whatever the run's own seed is.
        rotation: Training images are turned by up to so many degrees.
        shift: Training images are moved by up to this share of their size.
    """

    def __init__(
        self,
        num_classes: int,
        channels: int,
        image_size: int,
        val_share: float = 0.1,
        test_share: float = 0.2,
        split_seed: int = 0,
        rotation: float = 10.0,
        shift: float = 0.1,
        **loading: Any,
    ) -> None:
        super().__init__(**loading)
        self.facts = (num_classes, channels, image_size)
        self.val_share = val_share
        self.test_share = test_share
        self.split_seed = split_seed
        self.affine = RandomAffine(degrees=rotation, translate=(shift, shift))

    def setup(self, stage: str) -> None:
        if hasattr(self, "train_set"):
            return
        digits = load_digits()
        images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1)  # [N, 1, 8, 8], values 0 to 16
        labels = torch.tensor(digits.target)
        found = (len(digits.target_names), images.shape[1], images.shape[2])
        if found != self.facts:
            raise UserError(
                f"the digits have data.num_classes, data.channels, data.image_size {found} (got {self.facts}): "
                "leave out what changes them"
            )
        shares = (self.val_share, self.test_share)
        if not (min(shares) > 0 and sum(shares) < 1):
            raise UserError(
                f"data.val_share and data.test_share must be above 0 and leave something to train on (got {shares})"
            )
        try:
            rest, test = train_test_split(
                torch.arange(len(labels)), test_size=self.test_share, stratify=labels, random_state=self.split_seed
            )
            share = self.val_share / (1 - self.test_share)
            train, val = train_test_split(rest, test_size=share, stratify=labels[rest], random_state=self.split_seed)
        except ValueError as error:
            raise UserError(
                f"data.val_share and data.test_share are too small or too large to hold every class (got {shares})"
            ) from error
        images = (images - images[train].mean()) / images[train].std()
        self.train_set = BatchedTensors(images[train], labels[train])
        self.val_set = BatchedTensors(images[val], labels[val])
        self.test_set = BatchedTensors(images[test], labels[test])

    def augment_batch(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Turns and moves images a little. Digits are never flipped: a mirrored 2 is no digit, a turned 6 is a 9."""
        images, labels = batch
        return self.affine(images), labels
