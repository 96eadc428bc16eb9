"""The statistics that inputs are normalised with: measured on the training split, kept with the run."""

import logging
from typing import Any, NamedTuple

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torch import Tensor

from .errors import UserError
from .run_record import RunRecord

KEY = "normalisation"  # in `run.json` and in checkpoints

log = logging.getLogger(__name__)


class Normalisation(NamedTuple):
    """Makes `(images - mean) / std` of images, channel by channel.

    Attributes:
        mean, std: One number for each channel, in the unit of the images before.
    """

    mean: list[float]
    std: list[float]

    @classmethod
    def of(cls, images: Tensor) -> "Normalisation":
        """Measures `[N, C, ...]` images of any type: those of the training split, and no others.

        Raises:
            UserError: a channel has the same value everywhere.
        """
        values = images if images.is_floating_point() else images.float()
        std, mean = torch.std_mean(values, dim=[0, *range(2, values.ndim)])
        if not std.all():
            raise UserError(f"channel {int(std.argmin())} has one value in all training images: leave the channel out")
        return cls(mean.tolist(), std.tolist())

    @classmethod
    def stored_in(cls, checkpoint: dict[str, Any]) -> "Normalisation | None":
        """What a checkpoint holds of it; None in those from before, and of data modules that state none."""
        stored = checkpoint.get(KEY)
        return cls(**stored) if isinstance(stored, dict) and set(stored) == set(cls._fields) else None

    def __call__(self, images: Tensor) -> Tensor:
        """Normalises `[N, C, ...]` images of any type to floating numbers."""
        values = images if images.is_floating_point() else images.float()
        # filled one by one: a tensor made of a list is copied to a GPU, which then waits
        columns = (torch.stack([values.new_full((), number) for number in part]) for part in self)
        mean, std = (column.view(-1, *[1] * (values.ndim - 2)) for column in columns)
        return (values - mean) / std


def stated_by(data: object) -> Normalisation | None:
    """The normalisation of a data module, unless it uses the name for something of its own."""
    stated = getattr(data, "normalisation", None)
    return stated if isinstance(stated, Normalisation) else None


class KeepNormalisation(Callback):
    """Writes what the data module states as its `normalisation` into `run.json` and into every checkpoint."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if (stated := _stated(trainer)) is not None:
            self.record.update(**{KEY: stated._asdict()})

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        if (stated := _stated(trainer)) is not None:
            checkpoint[KEY] = stated._asdict()

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        stored, stated = Normalisation.stored_in(checkpoint), _stated(trainer)
        if stored is not None and stated is not None and trainer.is_global_zero and not _is_close(stored, stated):
            log.warning(
                "the checkpoint's inputs were normalised with mean %s and std %s, now with %s and %s: "
                "has the training data changed?",
                *(*stored, *stated),
            )


def _stated(trainer: Trainer) -> Normalisation | None:
    return stated_by(trainer.datamodule)  # type: ignore[attr-defined]


def _is_close(one: Normalisation, other: Normalisation) -> bool:
    mine, theirs = torch.tensor(one), torch.tensor(other)
    return mine.shape == theirs.shape and torch.allclose(mine, theirs, rtol=1e-3, atol=1e-6)
