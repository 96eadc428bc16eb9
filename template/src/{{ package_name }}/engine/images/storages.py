"""Where samples are read from: their files, the memory, or what `pack` has made of them."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ..cgroups import memory_limit
from ..cores import usable_cores
from ..data_module import FILES
from ..errors import UserError
from ..features import feature
from .decoding import BadImage
from .files import ImageFiles, ImageStore

MEMORY = "memory"
PACKED = ("memmap", "lmdb", "hdf5")  # of the feature `storage`
AT_ONCE = 64  # images that a thread reads


def as_mistake(bad: BadImage, count: int = 1) -> UserError:
    """What a user is told of the first of so many images that cannot be read."""
    more = f" ({count} such images in this batch)" if count > 1 else ""
    return UserError(f"{bad}{more}: mend or remove it, or type data.on_bad=skip to leave out what is like it")


def check_name(storage: str) -> None:
    """Raises UserError where there is no such storage, or not in this project."""
    if storage not in (FILES, MEMORY, *PACKED):
        raise UserError(f"data.storage must be {FILES}, {MEMORY}, {', '.join(PACKED)} (got {storage!r})")
    if storage in PACKED and feature("storage", "stores") is None:
        raise UserError(
            f"data.storage={storage} belongs to the feature storage, which this project does not have: "
            f"type copier update --data and tick it, or data.storage={FILES} or {MEMORY}"
        )


def open_store(storage: str, files: ImageFiles) -> ImageStore:
    """The images of `files`, in their order, in a storage that `check_name` has let pass.

    Raises:
        UserError: they do not fit the memory, one cannot be read, or they have not been packed.
    """
    if storage == FILES:
        return files
    if storage == MEMORY:
        return InMemory(files)
    store: ImageStore = feature("storage", "stores").open_store(storage, files)
    return store


class InMemory:
    """All images in one tensor, decoded once; forked and spawned workers share it.

    Args:
        files: Images of one size.

    Raises:
        UserError: they do not fit the memory, or one cannot be read.
    """

    def __init__(self, files: ImageFiles) -> None:
        size = files.image_size
        assert size is not None
        needed, free = len(files) * size**2 * files.channels, min(memory_limit(), _free_memory())
        if needed > 0.9 * free:
            raise UserError(
                f"data.storage={MEMORY} needs {needed / 1e9:.1f} GB for {len(files):,} images of {size}×{size} pixels, "
                f"and {free / 1e9:.1f} GB are free: type data.storage={FILES}, or a smaller data.image_size"
            )
        self.images = torch.empty(len(files), size, size, files.channels, dtype=torch.uint8)
        rows = self.images.numpy()

        def load(begin: int) -> None:
            places = range(begin, min(begin + AT_ONCE, len(files)))
            rows[begin : places.stop] = files.read(places)

        try:
            with ThreadPoolExecutor(usable_cores()) as threads:
                for _ in threads.map(load, range(0, len(files), AT_ONCE)):
                    pass
        except BadImage as error:
            raise as_mistake(error) from error

    def __len__(self) -> int:
        return len(self.images)

    def read(self, places: Sequence[int]) -> NDArray[np.uint8]:
        return self.images[torch.as_tensor(places)].numpy()


def find_bad(store: ImageStore) -> dict[int, str]:
    """Reads everything once, with all cores; returns places that cannot be read, with the reasons."""

    def look(begin: int) -> dict[int, str]:
        return bad_among(store, range(begin, min(begin + AT_ONCE, len(store))))

    with ThreadPoolExecutor(usable_cores()) as threads:
        found = threads.map(look, range(0, len(store), AT_ONCE))
        return {place: reason for part in found for place, reason in part.items()}


def bad_among(store: ImageStore, places: Sequence[int]) -> dict[int, str]:
    """Those of the places that cannot be read, with the reasons."""
    bad = {}
    for place in places:
        try:
            store.read([place])
        except BadImage as error:
            bad[place] = str(error)
    return bad


def _free_memory() -> float:
    """Bytes that this machine could give without swapping."""
    for line in Path("/proc/meminfo").read_text("ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return float("inf")
