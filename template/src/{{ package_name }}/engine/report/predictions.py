"""What the test of a classifier predicted: the confusion matrix and the samples that it was most wrong about."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as distributed
import torch.nn.functional as F
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torch import Tensor

from ..stage_metrics import Step
from .prediction_file import NAME

MOST_WRONG = 12
MOST_CLASSES = 1000
SIZE = 64  # pixels: larger pictures are made smaller

Samples = dict[str, Tensor]


class Predictions(Callback):
    """Writes `predictions.npz` after the test, where the outputs are logits `[B, C]` and the targets classes `[B]`.

    Other tasks, and more than 1,000 classes, get no file. Everything stays on the device until the test is over.

    Args:
        directory: The run directory.
    """

    def __init__(self, directory: str) -> None:
        self.file = Path(directory) / NAME

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.confusion: Tensor | None = None
        self.worst: list[Samples] = []

    def on_test_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, *index: int
    ) -> None:
        if not isinstance(outputs, Step) or not is_classification(outputs):
            return
        logits, targets = outputs.outputs.float(), outputs.targets.long()
        classes = logits.shape[1]
        confidence, predicted = logits.softmax(1).max(1)
        is_labelled = (targets >= 0) & (targets < classes)  # -100 marks samples without a class
        true = targets.where(is_labelled, 0)
        pairs = (true * classes + predicted).where(is_labelled, classes**2)
        counts = pairs.bincount(minlength=classes**2 + 1)[:-1].reshape(classes, classes)
        if self.confusion is None:
            self.confusion = torch.zeros_like(counts)
        if counts.shape != self.confusion.shape:  # of another test set
            return
        self.confusion += counts
        loss = F.cross_entropy(logits, true, reduction="none").where(is_labelled & (predicted != true), -1.0)
        samples = {"loss": loss, "true": true, "predicted": predicted, "confidence": confidence}
        if (images := _images(batch, len(targets))) is not None:
            samples["images"] = images
        samples = _most_wrong([samples])
        if "images" in samples:
            samples["images"] = _small(samples["images"])
        self.worst = [_most_wrong([*self.worst, samples])]

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        worst = [{name: values.cpu() for name, values in part.items()} for part in self.worst]
        mine = (None if self.confusion is None else self.confusion.cpu(), worst)
        ranks: list[Any] = [mine] * trainer.world_size
        if trainer.world_size > 1:
            distributed.all_gather_object(ranks, mine)
        matrices = [confusion for confusion, _ in ranks if confusion is not None]
        if not matrices or not trainer.is_global_zero:
            return
        most_wrong = _most_wrong([part for _, parts in ranks for part in parts])
        arrays: dict[str, Any] = {name: part[most_wrong["loss"] >= 0].numpy() for name, part in most_wrong.items()}
        beside = self.file.with_name(f".{NAME}")
        with beside.open("wb") as file:
            np.savez_compressed(file, confusion=torch.stack(matrices).sum(0).numpy(), **arrays)
        beside.replace(self.file)


def is_classification(step: Step) -> bool:
    """Whether outputs and targets look like logits `[B, C]` and classes `[B]`."""
    outputs, targets = step.outputs, step.targets
    return (
        outputs.ndim == 2
        and 2 <= outputs.shape[1] <= MOST_CLASSES
        and targets.shape == outputs.shape[:1]
        and targets.dtype in (torch.int64, torch.int32, torch.uint8)
    )


def _images(batch: Any, samples: int) -> Tensor | None:
    """The first tensor of the batch that holds a grey or colour picture of each sample, `[B, 1 or 3, H, W]`."""
    parts = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else [batch]
    for part in parts:
        if isinstance(part, Tensor) and part.ndim == 4 and part.shape[1] in (1, 3) and len(part) == samples:
            return part
    return None


def _small(images: Tensor) -> Tensor:
    """Pictures `[B, H, W, C]` uint8 of at most 64 pixels; the values of each are stretched to 0 to 255."""
    images = images.float()
    if (scale := SIZE / max(images.shape[2:])) < 1:
        images = F.interpolate(images, scale_factor=scale, mode="area")
    least, most = images.amin((1, 2, 3), keepdim=True), images.amax((1, 2, 3), keepdim=True)
    return ((images - least) / (most - least).clamp_min(1e-12) * 255).round().byte().permute(0, 2, 3, 1)


def _most_wrong(parts: list[Samples]) -> Samples:
    """The samples with the highest loss; without pictures where these differ in size."""
    names = [name for name in parts[0] if all(name in part for part in parts)]
    if "images" in names and len({part["images"].shape[1:] for part in parts}) > 1:
        names.remove("images")
    merged = {name: torch.cat([part[name] for part in parts]) for name in names}
    worst = merged["loss"].topk(min(MOST_WRONG, len(merged["loss"]))).indices
    return {name: values[worst] for name, values in merged.items()}
