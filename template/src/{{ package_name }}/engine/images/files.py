"""Reading images from their files: the storage `files`, from which every other one is made."""

import os
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import fsspec
import numpy as np
from numpy.typing import NDArray

from .classes import is_url
from .decoding import BadImage, decode, fit
from .names import Names


class ImageStore(Protocol):
    """What every storage offers. It is pickled and forked: what it opens, it opens in the process that reads."""

    def __len__(self) -> int: ...

    def read(self, places: Sequence[int]) -> list[NDArray[np.uint8]]:
        """The images of these places, each `[H, W, channels]` uint8, in their order.

        Raises:
            BadImage: one that cannot be read; the message begins with its path.
        """
        ...


class ImageFiles:
    """Image files below a root.

    Args:
        root: A folder, or any URL that fsspec opens.
        paths: Of the files, relative to `root`, with `/`.
        image_size: The side of the square that images are brought to; None keeps the size that they have.
        channels: 3 for RGB, 1 for grey.
    """

    def __init__(self, root: str, paths: Sequence[str], image_size: int | None, channels: int = 3) -> None:
        self.root = root
        self.paths = paths if isinstance(paths, Names) else Names(paths)
        self.image_size = image_size
        self.channels = channels

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, places: Sequence[int]) -> list[NDArray[np.uint8]]:
        paths = [self.paths[place] for place in places]
        load = self._load_remote if is_url(self.root) else self._load_local
        return [self._pixels(path, data) for path, data in zip(paths, load(paths), strict=True)]

    def _pixels(self, path: str, data: bytes | Exception) -> NDArray[np.uint8]:
        try:
            if isinstance(data, Exception):
                raise BadImage(f"the file cannot be read: {getattr(data, 'strerror', None) or data!r}")
            pixels = decode(data, self.channels)
        except BadImage as error:
            raise BadImage(f"{path}: {error}") from error.__cause__
        return pixels if self.image_size is None else fit(pixels, self.image_size)

    def _load_local(self, paths: list[str]) -> list[bytes | Exception]:
        loaded: list[bytes | Exception] = []
        for path in paths:
            try:
                with open(os.path.join(self.root, path), "rb", buffering=0) as file:
                    loaded.append(file.read())
            except OSError as error:
                loaded.append(error)
        return loaded

    def _load_remote(self, paths: list[str]) -> list[bytes | Exception]:
        """All at once, where the file system can."""
        file_system, folder = open_root(self.root)
        full = [f"{folder}/{path}" if folder else path for path in paths]
        loaded = file_system.cat(full, on_error="return")
        return [loaded[path] for path in full]


def open_root(root: str) -> tuple[Any, str]:
    """The file system of a URL and the folder in it; opened once in each process."""
    return _opened(root, os.getpid())


@cache
def _opened(root: str, process: int) -> tuple[Any, str]:
    file_system, folder = fsspec.core.url_to_fs(root)
    return file_system, folder.rstrip("/")
