"""Callbacks that watch a training from inside, or make one of its ranks fail."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.distributed import GradBucket
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook


class RankNotes(Callback):
    """Every rank writes `rank-<n>.json` into `folder`: its seed, a draw, all-reduces of gradients, sum of weights."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.all_reduces = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.seed, self.draw = torch.initial_seed(), torch.rand(()).item()
        trainer.strategy.model.register_comm_hook(None, self._count)  # type: ignore[operator, union-attr]

    def _count(self, state: None, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        self.all_reduces += 1
        return allreduce_hook(None, bucket)  # type: ignore[arg-type]

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        weights = sum(parameter.double().sum().item() for parameter in pl_module.parameters())
        notes = {"seed": self.seed, "draw": self.draw, "all_reduces": self.all_reduces, "weights": weights}
        (self.folder / f"rank-{trainer.global_rank}.json").write_text(json.dumps(notes))


class Fault(Callback):
    """On one rank, after so many steps: `raise`s, runs out of `memory`, or asks its own process to stop (`term`)."""

    def __init__(self, how: str, rank: int, step: int, stage: str = "train") -> None:
        self.how, self.rank, self.step, self.stage = how, rank, step, stage

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        self._act("train", trainer)

    def on_validation_batch_start(self, trainer: Trainer, *batch: Any) -> None:
        self._act("val", trainer)

    def _act(self, stage: str, trainer: Trainer) -> None:
        if (stage, trainer.global_rank, trainer.global_step) != (self.stage, self.rank, self.step):
            return
        if self.how == "raise":
            raise ValueError(f"a fault on rank {self.rank}")
        if self.how == "memory":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 0 bytes free.")
        os.kill(os.getpid(), signal.SIGTERM)


class Poison(Callback):
    """From step `first` to step `last`, on one rank: NaN in what `where` names.

    `batch` is the images, `validation` all validation images from then on; other names are those of a parameter, or of
    its gradient with `.grad` behind it.
    """

    def __init__(self, where: str, first: int, last: int, rank: int = 0) -> None:
        self.where, self.steps, self.rank = where, range(first, last + 1), rank

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        name = self.where.removesuffix(".grad")
        if name != self.where:
            weight = pl_module.get_parameter(name)
            weight.register_hook(lambda grad: grad * torch.nan if trainer.global_step in self.steps else grad)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        if trainer.global_step not in self.steps or trainer.global_rank != self.rank or self.where.endswith(".grad"):
            return
        if self.where == "batch":
            batch[0][0] = torch.nan
        elif self.where == "validation":
            trainer.datamodule.val_set.tensors[0][100:] = torch.nan  # type: ignore[attr-defined]
        else:
            pl_module.get_parameter(self.where).data[0] = torch.nan


class UnusedLayer(Callback):
    """Adds a layer that no step uses."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        pl_module.spare = nn.Linear(2, 2)


class NoWaiting(Callback):
    """Makes torch raise when the host waits for the GPU, from one batch to another."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        if batch_idx in (self.first, self.last):
            torch.cuda.set_sync_debug_mode("error" if batch_idx == self.first else "default")
