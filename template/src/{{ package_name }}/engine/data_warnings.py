"""What is wrong with the samples of the splits, before a network is trained on them."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations

from .split_facts import SplitFacts

Name = Callable[[int], str]  # of a class

IGNORED = -100  # the label that torch's losses pass over
# Standardised images and those scaled to [0, 1] lie well inside; 0 to 255 and a channel of one value lie outside.
LARGEST_MEAN, LEAST_STD, LARGEST_STD = 1.0, 0.1, 10.0
LARGEST_RATIO = 10  # between the samples of two classes; a loss that counts samples then hardly sees the rarer one
NAMED = 3  # classes in a message


def warnings_about(
    splits: Sequence[SplitFacts], num_classes: int | None, name: Name = str, is_weighted: bool = False
) -> Iterator[str]:
    """One line for each thing that is wrong: what was found and what to do.

    Args:
        splits: What was read of each.
        num_classes: Labels go from 0 to one less; None: they are not looked at.
        name: What people call a class.
        is_weighted: The loss weights the classes already.
    """
    for split in splits:
        if not split.read:
            yield f"{split.name} has no samples: look at {split.name}_dataloader of the data module"
    yield from _about_inputs(splits)
    for split in splits:
        if num_classes is not None and split.labels:
            yield from _about_labels(split, num_classes, name, is_weighted)
    for one, other in combinations(splits, 2):
        if shared := one.fingerprints.keys() & other.fingerprints.keys():
            count = sum(len(other.fingerprints[key]) for key in shared)
            yield (
                f"{count} {other.name} {'sample is' if count == 1 else 'samples are'} in {one.name} as well"
                f"{_example(one, other, shared)}: leave them in one of the two, or the score is of samples that the "
                "network knows"
            )


def is_unbalanced(counts: Sequence[int]) -> bool:
    """Whether a class has over ten times the samples of another one that has any."""
    return max(counts, default=0) > LARGEST_RATIO * min(filter(None, counts), default=0)


def _about_inputs(splits: Sequence[SplitFacts]) -> Iterator[str]:
    unfit: dict[str, str] = {}
    for split in splits:
        if split.are_ids:
            continue
        for channel, (mean, std) in enumerate(zip(*split.channels[:2].tolist(), strict=True)):
            if not math.isfinite(mean + std):
                yield f"{split.name} inputs hold NaN or infinite values (channel {channel}): clean the data"
                break
            if abs(mean) > LARGEST_MEAN or not LEAST_STD <= std <= LARGEST_STD:
                unfit[split.name] = f"(channel {channel}: mean {mean:.4g}, std {std:.4g})"
                break
    if unfit:
        yield (
            f"{', '.join(unfit)} inputs are not normalised {next(iter(unfit.values()))}: use "
            "engine.normalisation.Normalisation in the data module, with the training split"
        )


def _about_labels(split: SplitFacts, num_classes: int, name: Name, is_weighted: bool) -> Iterator[str]:
    outside = {label: split.labels[label] for label in split.labels if not 0 <= label < num_classes}
    outside.pop(IGNORED, None)
    if outside:
        yield (
            f"{split.name} has {sum(outside.values())} labels outside 0 to {num_classes - 1} ({_some(outside, str)}): "
            "correct data.num_classes or the labels"
        )
    counts = [split.labels[label] for label in range(num_classes)]
    if missing := [label for label, count in enumerate(counts) if not count]:
        yield (
            f"{split.name} has no sample of class {_some(missing, name)} among {split.read:,}: split by class with "
            "engine.splits.stratified_split, or correct data.num_classes"
        )
    if split.name == "train" and is_unbalanced(counts) and not is_weighted:
        frequent, rare = max(counts), min(filter(None, counts))
        yield (
            f"train has {frequent:,} samples of class {_called(counts.index(frequent), name)} and {rare:,} of class "
            f"{_called(counts.index(rare), name)}: weight the classes in the loss, and choose the best by a metric "
            "that counts every class alike, as with model.monitor=val/f1 model.mode=max"
        )


def _example(one: SplitFacts, other: SplitFacts, shared: Collection[bytes]) -> str:
    """Where the first of them are, if their datasets have indices."""
    places = [
        (mine, theirs)
        for key in shared
        if (mine := one.fingerprints[key][0]) is not None and (theirs := other.fingerprints[key][0]) is not None
    ]
    if not places:
        return ""
    mine, theirs = min(places)
    return f" (such as {one.name}_set[{mine}], {other.name}_set[{theirs}])"


def _called(label: int, name: Name) -> str:
    return str(label) if name(label) == str(label) else f"{label} ({name(label)})"


def _some(labels: Collection[int], name: Name) -> str:
    first, rest = sorted(labels)[:NAMED], len(labels) - NAMED
    more = f" and {rest} {'other' if rest == 1 else 'others'}" if rest > 0 else ""
    return ", ".join(_called(label, name) for label in first) + more
