"""Many texts in two arrays, which forked processes share."""

from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np


class Names(Sequence[str]):
    """A sequence of texts. A worker that reads a list of texts copies it bit by bit: Python counts in each of them."""

    def __init__(self, names: Iterable[str]) -> None:
        encoded = [name.encode("utf-8", "surrogateescape") for name in names]
        self._letters = np.frombuffer(b"".join(encoded), np.uint8)
        self._ends = np.cumsum([0, *map(len, encoded)])

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> "Names": ...

    def __getitem__(self, place: int | slice) -> "str | Names":
        if isinstance(place, slice):
            return Names(self[each] for each in range(len(self))[place])
        place = range(len(self))[place]
        letters = self._letters[self._ends[place] : self._ends[place + 1]]
        return letters.tobytes().decode("utf-8", "surrogateescape")
