"""A dataset of images that is read a batch at a time, and never raises out of a worker."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from .decoding import BadImage
from .files import ImageStore, read_array
from .storages import bad_among


class ImageBatch(NamedTuple):
    """A batch as a worker hands it over.

    Attributes:
        images: `[B, C, H, W]` uint8, the channels of a pixel side by side in memory.
        labels: `[B]` int64.
        bad: What could not be read, and why; `images` is then empty.
    """

    images: Tensor
    labels: Tensor
    bad: list[str]


class Images(Dataset[Any]):
    """Some images of a store, with their labels.

    Args:
        store: Images of one size.
        places: Which of them, `[N]` int64.
        labels: Classes of these, `[N]` int64.
    """

    def __init__(self, store: ImageStore, places: Tensor, labels: Tensor) -> None:
        self.store = store
        self.places = places
        self.labels = labels

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """An image `[C, H, W]` uint8 and its label."""
        return _tensor(read_array(self.store, [int(self.places[index])]))[0], self.labels[index]

    def __getitems__(self, indices: Sequence[int]) -> ImageBatch:
        rows = torch.as_tensor(indices)
        places = self.places[rows].tolist()
        try:
            return ImageBatch(_tensor(read_array(self.store, places)), self.labels[rows], [])
        except BadImage:
            bad = list(bad_among(self.store, places).values())
            return ImageBatch(torch.empty(0, 3, 1, 1, dtype=torch.uint8), self.labels[:0], bad)


def _tensor(rows: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(rows).permute(0, 3, 1, 2)
