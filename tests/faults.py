"""Callbacks for trainings of the tests: one makes a rank fail, one tells from inside a training what a rank is."""

import hashlib
import json
import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback


class Fault(Callback):
    """Makes one rank fail before an optimizer step, and leaves a file `fault` in the run directory just before.

    Args:
        how: `raise`, `exit` (as a program does), `vanish` (without a word), `kill`, `term`, `hang`, `memory` (there is
            none left), `poison` (NaN in the weights), or `no`.
        rank: Which one.
        step: Optimizer steps that were done before.
        only_lr: In a sweep, the learning rate of the job that fails; null: every job.
        unless: A file; where it exists, nothing happens.
    """

    def __init__(
        self, how: str, rank: int = 0, step: int = 5, only_lr: float | None = None, unless: str | None = None
    ) -> None:
        self.how = how
        self.rank = rank
        self.step = step
        self.only_lr = only_lr
        self.unless = unless

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        is_meant = self.only_lr in (None, learning_rate(trainer)) and not (self.unless and Path(self.unless).exists())
        if not is_meant or trainer.global_rank != self.rank or trainer.global_step != self.step:
            return
        Path(trainer.default_root_dir, "fault").touch()
        match self.how:
            case "raise":
                raise ValueError(f"a fault on rank {self.rank}")
            case "exit":
                sys.exit(0)
            case "vanish":
                os._exit(0)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "term":
                os.kill(os.getpid(), signal.SIGTERM)
            case "memory":
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            case "poison":
                with torch.no_grad():
                    next(pl_module.parameters()).fill_(math.nan)
            case "hang":
                while True:
                    time.sleep(1)


class FaultOnce(Callback):
    """Fails the first training that comes to its second step; a file `marker` tells the others that it has happened."""

    def __init__(self, marker: str) -> None:
        self.marker = Path(marker)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if trainer.global_step == 1 and not self.marker.exists():
            self.marker.touch()
            raise ValueError("a fault that does not come again")


class Witness(Callback):
    """Leaves the process id of every rank in the run directory while it trains, and at the end what it has trained.

    Args:
        pause: Seconds before every step, so that a signal comes before the end.
    """

    def __init__(self, pause: float = 0.0) -> None:
        self.pause = pause

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        time.sleep(self.pause)
        if trainer.global_step >= 2:
            self._leave(trainer, "pid", os.getpid())

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        weights = hashlib.sha256(b"".join(value.detach().numpy().tobytes() for value in pl_module.parameters()))
        seen = {"lr": learning_rate(trainer), "weights": weights.hexdigest(), "steps": trainer.global_step}
        self._leave(trainer, "witness", seen | {"port": os.environ.get("MASTER_PORT")})

    def _leave(self, trainer: Any, name: str, value: Any) -> None:
        file = Path(trainer.default_root_dir, f"{name}-{trainer.global_rank}")
        if not file.exists():
            draft = file.with_name(f".{file.name}")
            draft.write_text(json.dumps(value), encoding="utf-8")
            draft.rename(file)


def learning_rate(trainer: Any) -> float:
    """The one of the config, whatever the schedule has made of it."""
    return trainer.optimizers[0].defaults["lr"]
