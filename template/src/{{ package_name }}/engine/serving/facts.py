"""What the processes without torch know of the network."""

from typing import NamedTuple


class Facts(NamedTuple):
    """Names of the classes, and the shape `(C, H, W)` of an image."""

    class_names: list[str]
    shape: tuple[int, int, int]
