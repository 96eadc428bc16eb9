"""A callback that ends the process after the first optimizer step; the wall time of the command is what is measured."""

from __future__ import annotations

import os
from typing import Any

from lightning.pytorch.callbacks import Callback


class ExitAfterFirstStep(Callback):
    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        assert trainer.global_step == 1
        os._exit(0)
