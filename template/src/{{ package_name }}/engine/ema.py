"""An exponential moving average of the weights."""

import warnings
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import EMAWeightAveraging
from lightning.pytorch.trainer.states import TrainerFn


class ExponentialMovingAverage(EMAWeightAveraging):
    """Lightning's average, which is validated, tested and saved in place of the weights of the last step.

    Lightning puts the weights of the last step back whenever a checkpoint is loaded in the process that trained: a
    test of the best checkpoint would test weights that were never validated. Only a resumed training wants them.
    """

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        with warnings.catch_warnings():  # TrainingModule has the hook, and refuses where it would shard
            warnings.filterwarnings("ignore", ".*overrides the configure_model callback", UserWarning)
            super().setup(trainer, pl_module, stage)

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        if trainer.state.fn == TrainerFn.FITTING:
            super().on_load_checkpoint(trainer, pl_module, checkpoint)
