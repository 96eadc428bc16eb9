"""Images of your own: a folder for each class, or a table. `docs/images.md` leads through it."""

from typing import Any

from kornia.augmentation import RandomBrightness, RandomContrast, RandomHorizontalFlip, RandomResizedCrop
from torch import Tensor, nn

from ..engine.images.data_module import ImageData


class ImageFolder(ImageData):
    """Images with the augmentation of photographs; change it to what keeps your labels true.

    Args:
        scale: Least share of an image's area that a crop keeps; 1 crops nothing.
        flip: Probability of a mirrored image; 0 where left and right matter, as in letters.
        brightness, contrast: Both change by up to this share.
        images: Where the images are, and how they are split and read: see `ImageData`.
    """

    def __init__(
        self, scale: float = 0.7, flip: float = 0.5, brightness: float = 0.2, contrast: float = 0.2, **images: Any
    ) -> None:
        super().__init__(**images)
        size = (self.image_size, self.image_size)
        self.augmentation = nn.Sequential(
            RandomResizedCrop(size, scale=(scale, 1.0), ratio=(0.8, 1.25), cropping_mode="resample"),
            RandomHorizontalFlip(p=flip),
            RandomBrightness((1 - brightness, 1 + brightness), p=1.0),
            RandomContrast((1 - contrast, 1 + contrast), p=1.0),
        )

    def augment_images(self, images: Tensor) -> Tensor:
        """Changes each image `[B, C, H, W]`, from 0 to 1, by numbers of its own."""
        return self.augmentation(images)
