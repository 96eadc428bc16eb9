"""Mean and deviation of the training images, from whole numbers: the same on every machine."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..cores import usable_cores
from ..errors import UserError
from ..normalisation import Normalisation
from .decoding import BadImage
from .files import ImageStore, read_array
from .storages import as_mistake

MOST = 2048  # images; the deviation of that many is known to a percent
AT_ONCE = 32


def measure(store: ImageStore, places: Tensor, seed: int) -> Normalisation:
    """Statistics of images, on a scale from 0 to 1; of `MOST` that the seed chooses where there are more.

    Args:
        store: Images of one size.
        places: Those of the training split, `[N]` int64.

    Raises:
        UserError: one cannot be read, or a channel has the same value everywhere.
    """
    if len(places) > MOST:
        places = places[torch.randperm(len(places), generator=torch.Generator().manual_seed(seed))[:MOST]]
    chosen = places.sort().values.split(AT_ONCE)

    def sums(part: Tensor) -> NDArray[np.int64]:
        """Number of values, their sum and the sum of their squares, channel by channel."""
        images = read_array(store, part.tolist())
        values = images.reshape(-1, images.shape[-1]).astype(np.int64)
        return np.stack([np.full(values.shape[1], len(values)), values.sum(0), (values**2).sum(0)])

    try:
        with ThreadPoolExecutor(usable_cores()) as threads:
            count, total, squares = sum(threads.map(sums, chosen), np.zeros((3, 1), np.int64))
    except BadImage as error:
        raise as_mistake(error) from error
    mean = total / count
    std = np.sqrt(np.maximum(squares / count - mean**2, 0))
    if not std.all():
        raise UserError(f"channel {int(std.argmin())} has one value in all training images: look at the images")
    return Normalisation((mean / 255).tolist(), (std / 255).tolist())
