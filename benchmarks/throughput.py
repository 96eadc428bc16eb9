"""Samples a second, over all processes, once the first steps are done, in an epoch that is long enough for that."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from cell_counter.data.digits import Digits
from cell_counter.engine.batched_tensors import BatchedTensors
from lightning.pytorch.callbacks import Callback

from benchmarks import WARMUP


class Clock(Callback):
    """Rank 0 writes `samples_per_second` and `seconds_a_step` into the file `result`."""

    def __init__(self, result: str) -> None:
        self.result = Path(result)

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if trainer.global_step == WARMUP:
            self.began = time.perf_counter()

    def on_train_end(self, trainer: Any, module: Any) -> None:
        seconds = (time.perf_counter() - self.began) / (trainer.global_step - WARMUP)
        samples = trainer.datamodule.batch_size * trainer.world_size
        if trainer.is_global_zero:
            figures = {"samples_per_second": samples / seconds, "seconds_a_step": seconds}
            self.result.write_text(json.dumps(figures), encoding="utf-8")


class TrainingTime(Callback):
    """Leaves the seconds of a training in `folder`, under the number of its process."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self.began = time.perf_counter()

    def on_train_end(self, trainer: Any, module: Any) -> None:
        (self.folder / str(os.getpid())).write_text(str(time.perf_counter() - self.began), encoding="utf-8")


class ManyDigits(Digits):
    """The training digits sixteen times over: ends of epochs weigh what they weigh in a real training."""

    def setup(self, stage: str) -> None:
        super().setup(stage)
        self.train_set = BatchedTensors(*(tensor.repeat(16, *[1] * (tensor.dim() - 1)) for tensor in self.train_set[:]))
