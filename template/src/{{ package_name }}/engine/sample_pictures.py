"""Pictures of samples with their labels, and of how often each label occurs."""

import math
import textwrap
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor

from .split_facts import SplitFacts

DPI = 100
LEAST, MOST = 96, 224  # pixels of an image's longer side in a grid
GAP, LINE, HEAD = 8, 14, 50  # pixels between images, of a line of words above one, and for the title
LETTER, LETTERS = 8, 20  # pixels of a letter, about, and letters for which there is always room above an image
MOST_LINES, MOST_LETTERS = 3, 40  # of words above an image, and of a name below a bar
MOST_TICKS = 120


def is_drawable(images: Tensor) -> bool:
    """Whether they are grey or colour images `[N, 1 or 3, H, W]`."""
    return images.ndim == 4 and images.shape[1] in (1, 3)


def sample_grid(images: Sequence[Tensor], words: Sequence[str], columns: int, title: str) -> Figure:
    """Images `[1 or 3, H, W]` of any type row by row, with words above each.

    All are on one scale, from their least value to their largest. Small ones are enlarged by a whole number, without
    smoothing.
    """
    finite = torch.cat([image[image.isfinite()].flatten().double() for image in images])
    least, most = (finite.min(), finite.max()) if len(finite) else (finite.new_tensor(0), finite.new_tensor(1))
    shown = [_fitted((image.double() - least) / (most - least).clamp_min(1e-12)) for image in images]
    tall, wide = (max(LEAST, *(image.shape[side] for image in shown)) for side in (1, 2))
    wide = max(wide, LETTER * min(LETTERS, max(map(len, words))))
    rows = math.ceil(len(images) / columns)
    captions = [_wrapped(word, wide // LETTER) for word in words]
    above = GAP + LINE * max(len(caption) for caption in captions)
    width, height = columns * (wide + GAP) + GAP, rows * (above + tall) + HEAD + GAP
    figure = Figure((width / DPI, height / DPI), DPI)
    title = f"{title}\nvalues from {least:.4g} (black) to {most:.4g} (white)"
    figure.text(0.5, 1 - GAP / height, title, ha="center", va="top", fontsize=10)
    for place, (image, caption) in enumerate(zip(shown, captions, strict=True)):
        x = GAP + place % columns * (wide + GAP) + (wide - image.shape[2]) // 2
        y = height - HEAD - (place // columns + 1) * (above + tall)
        pixels = image.expand(3, -1, -1).permute(1, 2, 0).nan_to_num(0).clamp(0, 1)
        figure.figimage(pixels.numpy(), x, y + tall - image.shape[1], origin="upper")
        middle, bottom = (x + image.shape[2] / 2) / width, (y + tall + 5) / height
        figure.text(middle, bottom, "\n".join(caption), ha="center", fontsize=9, linespacing=1.1, parse_math=False)
    return figure


def _fitted(image: Tensor) -> Tensor:
    """The image at a size at which it can be seen, `[C, H, W]`."""
    longer = max(image.shape[1:])
    if longer > MOST:
        size = [max(1, side * MOST // longer) for side in image.shape[1:]]
        return F.interpolate(image[None], size, mode="area")[0]
    times = math.ceil(LEAST / longer)
    return image.repeat_interleave(times, 1).repeat_interleave(times, 2)


def _cut(word: str) -> str:
    return word if len(word) <= MOST_LETTERS else f"{word[: MOST_LETTERS - 1]}…"


def _wrapped(word: str, letters: int) -> list[str]:
    return textwrap.wrap(word, letters, max_lines=MOST_LINES, placeholder="…") or [""]


def label_bars(splits: Sequence[SplitFacts], labels: Sequence[int], name: Callable[[int], str]) -> Figure:
    """How many samples of each label were read, a chart for each split."""
    every = math.ceil(len(labels) / MOST_TICKS)
    names = [_cut(name(label)) for label in labels[::every]]
    longest = max(map(len, names))
    is_upright = longest <= 3 and len(labels) <= 40
    width = max(5, min(0.3 * len(labels), 12), 0.16 * len(names)) + 1  # inches
    height = 1.8 * len(splits) + (0.8 if is_upright else 0.6 + 0.08 * longest)
    figure = Figure((width, height), DPI, layout="constrained")
    for axes, split in zip(figure.subplots(len(splits), squeeze=False, sharex=True).flat, splits, strict=True):
        axes.bar(range(len(labels)), [split.labels[label] for label in labels])
        axes.margins(x=0.01)
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set_title(f"{split.name}, {split.read:,} samples", fontsize=10)
        axes.set_ylabel("samples")
    axes.set_xlabel("label")
    axes.set_xticks(range(0, len(labels), every), names, parse_math=False, fontsize=9)
    axes.tick_params(axis="x", rotation=0 if is_upright else 90)
    return figure
