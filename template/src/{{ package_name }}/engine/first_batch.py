"""What a batch must be like. Looked at once: before the network, the loss or a GPU kernel trips over it."""

import logging
import math
from typing import Any

import torch
from torch import Tensor, nn

from .errors import UserError

log = logging.getLogger(__name__)


def describe(batch: Any) -> str:
    """Shapes and types, such as `([64, 1, 8, 8] float32, [64] int64)`."""
    if isinstance(batch, Tensor):
        return f"{list(batch.shape)} {str(batch.dtype).removeprefix('torch.')}"
    if isinstance(batch, dict):
        return f"{{{', '.join(f'{key}: {describe(part)}' for key, part in batch.items())}}}"
    if isinstance(batch, (list, tuple)):
        return f"({', '.join(map(describe, batch))})"
    return type(batch).__name__


def refuse_nan(batch: Any) -> None:
    """Raises UserError where a tensor anywhere in the batch holds NaN; on a GPU it waits for the answer.

    Infinity passes: masks hold it.
    """
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        for part in batch:
            refuse_nan(part)
    elif isinstance(batch, Tensor) and batch.layout is torch.strided and (bad := int(batch.isnan().sum())):
        raise UserError(
            f"{bad} of the {batch.numel()} values of {describe(batch)} are NaN: clean the data, look at augment_batch, "
            "or override check_batch where they are meant"
        )


def check_classification(batch: Any, net: nn.Module, num_classes: int, ignore_index: int = -100) -> None:
    """Looks at images and class labels as `nn.CrossEntropyLoss` takes them.

    Args:
        batch: Images `[B, C, H, W]` of a floating type and labels `[B]` int64, or shares of each class
            `[B, num_classes]` of a floating type.
        net: Its attribute `channels`, where it has one, is the number of channels that it takes.
        num_classes: Labels go from 0 to one less.
        ignore_index: A label that the loss passes over.

    Raises:
        UserError: what does not fit, with what was found.
    """
    if not isinstance(batch, (list, tuple)) or not all(isinstance(part, Tensor) for part in batch) or len(batch) != 2:
        raise UserError(f"{describe(batch)} is no pair of images and labels: return both from the dataset")
    images, labels = batch
    if not images.is_floating_point():
        raise UserError(
            f"images are {describe(images)}, but the network computes with floating numbers: "
            "convert them in the data module, as in images.float() / 255"
        )
    if not images.isfinite().all():
        raise UserError(f"images {describe(images)} hold infinite values: clean the data, or look at augment_batch")
    channels = getattr(net, "channels", None)
    if images.ndim != 4 or channels not in (None, images.shape[1]):
        raise UserError(
            f"images are {describe(images)}, but the network takes [batch, {channels or 'channels'}, height, width]: "
            "correct data.channels or the images"
        )
    if labels.is_floating_point() and labels.shape == (len(images), num_classes):
        return
    if labels.dtype not in (torch.int64, torch.uint8) or labels.shape != (len(images),):
        raise UserError(
            f"labels are {describe(labels)}, but CrossEntropyLoss takes the number of each image's class, "
            f"[{len(images)}] int64: convert them in the dataset, as in labels.long()"
        )
    counted = labels[labels != ignore_index]
    if len(counted) and not 0 <= int(counted.min()) <= int(counted.max()) < num_classes:
        raise UserError(
            f"labels go from {int(counted.min())} to {int(counted.max())}, but with num_classes={num_classes} they go "
            f"from 0 to {num_classes - 1}: correct data.num_classes or the labels"
        )


def warn_of_probabilities(outputs: Tensor) -> None:
    """Warns where each row of outputs `[B, classes, ...]` lies in [0, 1] and sums to 1: a loss that takes logits would
    squash them once more."""
    if outputs.ndim < 2 or outputs.shape[1] < 2 or not outputs.is_floating_point():
        return
    rows = outputs.detach().float()
    if bool((rows >= 0).all() and ((rows.sum(1) - 1).abs() < 0.01).all()):
        log.warning(
            "the network's outputs look like probabilities (no row has a negative value, each sums to 1): "
            "CrossEntropyLoss takes logits, leave out the softmax"
        )


def say_first_loss(loss: Tensor, outputs: Tensor, targets: Tensor) -> None:
    """Compares the loss of untrained weights with ln(classes), that of guessing; warns where it is 2 % higher.

    Says nothing where outputs `[B, classes, ...]` and targets `[B, ...]` are not those of a classification. Label
    smoothing and class weights do not change the loss of guessing.
    """
    if outputs.ndim < 2 or outputs.shape[1] < 2 or targets.is_floating_point():
        return
    if targets.shape != outputs.shape[:1] + outputs.shape[2:]:
        return
    classes, found = outputs.shape[1], float(loss)
    guessing = math.log(classes)
    if found < 0:  # no cross-entropy
        return
    facts = f"first loss {found:.4f}, that of guessing is ln({classes}) = {guessing:.4f}"
    if 1.02 * guessing < found < math.inf:
        log.warning(
            "%s: look at the initialisation, a small last layer with zero bias begins there (engine.initialisation), "
            "and whether the loss is the mean over the batch",
            facts,
        )
    else:
        log.info("%s", facts)
