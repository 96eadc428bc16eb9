"""Stratified splits: every part holds each class in the same proportion."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, train_test_split
from torch import Tensor

from .data_module import Fold
from .errors import UserError


class Split(NamedTuple):
    """Places of samples, `[N]` int64."""

    train: Tensor
    val: Tensor
    test: Tensor


def stratified_split(
    labels: Tensor,
    val_share: float,
    test_share: float,
    seed: int,
    fold: Fold | None = None,
    groups: Sequence[str] | None = None,
    given: Mapping[str, Tensor] | None = None,
) -> Split:
    """Splits samples by their classes.

    With `fold`, what is not for the test is cut into `fold.count` parts: that of the fold is for validation, the others
    are trained on. The test samples are the same in every fold and without folds.

    Args:
        labels: Classes `[N]`, any integer type.
        val_share, test_share: Shares of all samples; `val_share` is not read where there is a fold.
        seed: Fixes the split.
        fold: Which part validates.
        groups: What samples of one group have in common, such as a patient: a group is never divided. Shares are then
            1/2, 1/3, 1/4, ... of the samples, whichever is nearest, and as equal as whole groups can be.
        given: Places of parts that are settled: `train`, and `val`, `test` or both. What is missing is cut from
            `train`.

    Raises:
        UserError: a part would be empty, or a class is too small to be in every part.
    """
    given = given or {}
    shares = (val_share, test_share)
    cut_shares = [share for part, share in (("val", val_share), ("test", test_share)) if part not in given]
    if cut_shares and not (min(cut_shares) > 0 and sum(cut_shares) < 1):
        raise UserError(
            f"data.val_share and data.test_share must be above 0 and leave something to train on (got {shares})"
        )
    cut = _Cut(labels, groups, seed, shares)
    rest, test = given.get("train", torch.arange(len(labels))), given.get("test")
    left = 1.0
    if test is None:
        rest, test = cut(rest, test_share)
        left -= test_share
    if fold is not None:
        rest = torch.cat([rest, given["val"]]) if "val" in given else rest
        train, val = cut.folds(rest, fold.count)[fold.number]
        return Split(train, val, test)
    if "val" in given:
        return Split(rest, given["val"], test)
    return Split(*cut(rest, val_share / left), test)


class _Cut:
    """Cuts places into two, stratified and without dividing a group."""

    def __init__(self, labels: Tensor, groups: Sequence[str] | None, seed: int, shares: tuple[float, float]) -> None:
        self.labels = labels
        self.numbers: Tensor | None = None
        if groups is not None:
            names = {name: number for number, name in enumerate(sorted(set(groups)))}
            self.numbers = torch.tensor([names[name] for name in groups])
        self.seed = seed
        self.shares = shares

    def __call__(self, places: Tensor, share: float) -> tuple[Tensor, Tensor]:
        """What is left, and the share."""
        if self.numbers is not None:
            return self.folds(places, max(2, round(1 / share)))[0]
        labels = self.labels[places]
        try:
            rest, part = train_test_split(places, test_size=share, stratify=labels, random_state=self.seed)
        except ValueError as error:
            raise UserError(
                "data.val_share and data.test_share are too small or too large to hold every class "
                f"(got {self.shares}; samples of the smallest class: {int(labels.unique(return_counts=True)[1].min())})"
            ) from error
        return rest, part

    def folds(self, places: Tensor, count: int) -> list[tuple[Tensor, Tensor]]:
        """For each of `count` parts, the others and the part."""
        labels = self.labels[places]
        if self.numbers is None:
            smallest = int(labels.unique(return_counts=True)[1].min())
            if smallest < count:
                raise UserError(f"data.folds={count} is more than the {smallest} samples of the smallest class")
            parts = StratifiedKFold(count, shuffle=True, random_state=self.seed).split(places, labels)
            return [(places[rest], places[part]) for rest, part in parts]
        numbers = self.numbers[places]
        for label in labels.unique():
            if (found := len(numbers[labels == label].unique())) < count:
                raise UserError(
                    f"class number {int(label)} has {found} groups, too few for {count} parts, each with other ones: "
                    "choose larger data.val_share and data.test_share, fewer data.folds, or state the split"
                )
        parts = StratifiedGroupKFold(count, shuffle=True, random_state=self.seed).split(places, labels, numbers)
        cuts = [(places[rest], places[part]) for rest, part in parts]
        classes = len(labels.unique())
        if any(len(self.labels[side].unique()) < classes for cut in cuts for side in cut):
            raise UserError(
                "groups are too large to put every class into every part: choose larger data.val_share and "
                "data.test_share, fewer data.folds, another data.split_seed, or state the split"
            )
        return cuts
