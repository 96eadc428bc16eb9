"""What is wrong with the samples of the splits, before a network is trained on them."""

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from .split_facts import SplitFacts

IGNORED = -100  # the label that torch's losses pass over
# Standardised images and those scaled to [0, 1] lie well inside; 0 to 255 and a channel of one value lie outside.
LARGEST_MEAN, LEAST_STD, LARGEST_STD = 1.0, 0.1, 10.0
LARGEST_RATIO = 10  # between the samples of two classes; a loss that counts samples then hardly sees the rarer one


def warnings_about(splits: Sequence[SplitFacts], num_classes: int | None) -> Iterator[str]:
    """One line for each thing that is wrong: what was found and what to do."""
    for split in splits:
        if not split.read:
            yield f"{split.name} has no samples: look at {split.name}_dataloader of the data module"
        yield from _about_inputs(split)
        if num_classes is not None and split.labels:
            yield from _about_labels(split, num_classes)
    for one, other in combinations(splits, 2):
        if shared := len(one.fingerprints & other.fingerprints):
            yield (
                f"{shared} {'input is' if shared == 1 else 'inputs are'} in {one.name} and in {other.name}: leave them "
                "in one of the two, or the score is of samples that the network knows"
            )


def _about_inputs(split: SplitFacts) -> Iterator[str]:
    for channel, (mean, std) in enumerate(zip(*split.channels[:2].tolist(), strict=True)):
        if not math.isfinite(mean + std):
            yield f"{split.name} inputs hold NaN or infinite values (channel {channel}): clean the data"
            return
        if abs(mean) > LARGEST_MEAN or not LEAST_STD <= std <= LARGEST_STD:
            yield (
                f"{split.name} inputs are not normalised (channel {channel}: mean {mean:.4g}, std {std:.4g}): use "
                "engine.normalisation.Normalisation in the data module, with the training split"
            )
            return


def _about_labels(split: SplitFacts, num_classes: int) -> Iterator[str]:
    outside = {label: split.labels[label] for label in split.labels if not 0 <= label < num_classes}
    outside.pop(IGNORED, None)
    if outside:
        yield (
            f"{split.name} has {sum(outside.values())} labels outside 0 to {num_classes - 1} ({_some(outside)}): "
            "correct data.num_classes or the labels"
        )
    counts = [(split.labels[label], label) for label in range(num_classes)]
    if missing := [label for count, label in counts if not count]:
        yield (
            f"{split.name} has no sample of class {_some(missing)} among {split.read:,}: split by class with "
            "engine.splits.stratified_split, or correct data.num_classes"
        )
    (least, rare), (most, frequent) = min((pair for pair in counts if pair[0]), default=(1, 0)), max(counts)
    if split.name == "train" and most > LARGEST_RATIO * least:
        yield (
            f"train has {most} samples of class {frequent} and {least} of class {rare}: weight the loss, and monitor "
            "a metric that counts every class alike, such as val/f1"
        )


def _some(labels: Collection[int]) -> str:
    first, rest = sorted(labels)[:5], len(labels) - 5
    return ", ".join(map(str, first)) + (f" and {rest} others" if rest > 0 else "")
