"""Handwritten digits: 1,797 images of 8×8 pixels that ship with scikit-learn."""

from typing import Any

import torch
from kornia.augmentation import RandomAffine
from sklearn.datasets import load_digits
from torch import Tensor

from ..engine.batched_tensors import BatchedTensors
from ..engine.data_module import DataModule
from ..engine.errors import UserError
from ..engine.normalisation import Normalisation
from ..engine.splits import stratified_split


class Digits(DataModule):
    """Images `[B, 1, 8, 8]` float32, normalised with the training split's mean and deviation, and labels `[B]` int64.

    Args:
        num_classes, channels, image_size: What the model is told about the data; checked against it.
        val_share, test_share: Shares of all samples; every split holds each class in the same proportion. With
            `fold`, one fold of what is not for the test takes the place of the share for validation.
        split_seed: Fixes the split, whatever the run's own seed is.
        rotation: Training images are turned by up to so many degrees.
        shift: Training images are moved by up to this share of their size.
    """

    white = 16.0

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
        train, val, test = stratified_split(labels, *shares, self.split_seed, self.fold)
        self.class_names = [str(name) for name in digits.target_names]
        self.normalisation = Normalisation.of(images[train])
        images = self.normalisation(images)
        self.train_set = BatchedTensors(images[train], labels[train])
        self.val_set = BatchedTensors(images[val], labels[val])
        self.test_set = BatchedTensors(images[test], labels[test])

    def augment_batch(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Turns and moves images a little. Digits are never flipped: a mirrored 2 is no digit, a turned 6 is a 9."""
        images, labels = batch
        background = images.amin()  # what is moved in from outside is 0, which is grey in normalised images
        return self.affine(images - background) + background, labels
