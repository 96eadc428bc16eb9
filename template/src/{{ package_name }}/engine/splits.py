"""Stratified splits: every part holds each class in the same proportion."""

from typing import NamedTuple

import torch
from sklearn.model_selection import StratifiedKFold, train_test_split
from torch import Tensor

from .data_module import Fold
from .errors import UserError


class Split(NamedTuple):
    """Places of samples, `[N]` int64."""

    train: Tensor
    val: Tensor
    test: Tensor


def stratified_split(labels: Tensor, val_share: float, test_share: float, seed: int, fold: Fold | None = None) -> Split:
    """Splits samples by their classes.

    With `fold`, what is not for the test is cut into `fold.count` parts: that of the fold is for validation, the others
    are trained on. The test samples are the same in every fold and without folds.

    Args:
        labels: Classes `[N]`, any integer type.
        val_share, test_share: Shares of all samples; `val_share` is not read where there is a fold.
        seed: Fixes the split.
        fold: Which part validates.

    Raises:
        UserError: a part would be empty, or a class is too small to be in every part.
    """
    shares = (val_share, test_share)
    if not (min(shares) > 0 and sum(shares) < 1):
        raise UserError(
            f"data.val_share and data.test_share must be above 0 and leave something to train on (got {shares})"
        )
    try:
        rest, test = train_test_split(
            torch.arange(len(labels)), test_size=test_share, stratify=labels, random_state=seed
        )
        if fold is None:
            share = val_share / (1 - test_share)
            train, val = train_test_split(rest, test_size=share, stratify=labels[rest], random_state=seed)
            return Split(train, val, test)
    except ValueError as error:
        raise UserError(
            f"data.val_share and data.test_share are too small or too large to hold every class (got {shares}; "
            f"samples of the smallest class: {int(labels.unique(return_counts=True)[1].min())})"
        ) from error
    smallest = int(torch.unique(labels[rest], return_counts=True)[1].min())
    if smallest < fold.count:
        raise UserError(f"data.folds={fold.count} is more than the {smallest} samples of the smallest class")
    parts = StratifiedKFold(fold.count, shuffle=True, random_state=seed).split(rest, labels[rest])
    train, val = list(parts)[fold.number]
    return Split(rest[train], rest[val], test)
