"""Going on with a run from its last checkpoint, as if it had never stopped."""

import copy
import random
from typing import Any

import numpy as np
import torch
import torch.distributed as distributed
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torchmetrics import Metric

from .lightning_private import count_epochs_alike, metric_states, rebuild_training_loader
from .loggers import add_missing_row, forget_steps
from .stage_metrics import StageMetrics, Step


def training_position(trainer: Trainer) -> tuple[int, int]:
    """The epoch to train next, and the batches of it that a resumed run has done."""
    fit = trainer.fit_loop
    done = fit.epoch_loop.batch_progress.current.processed if fit.restarting else 0  # type: ignore[attr-defined]
    return fit.epoch_progress.current.processed, done  # type: ignore[attr-defined]


class ExactResume(Callback):
    """Stores and restores what Lightning leaves out of a checkpoint: random states and running metrics of each rank.

    Weights, optimizer, schedule, callbacks and progress are Lightning's. On another number of ranks the random states
    start anew: their numbers would belong to other samples.
    """

    def __init__(self) -> None:
        self.loaded: list[dict[str, Any]] | None = None
        self.epoch_metrics: dict[str, float] = {}
        self.ended_epoch: int | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self.trainer, self.module = trainer, pl_module
        count_epochs_alike(trainer)

    def state_dict(self) -> dict[str, Any]:
        waiting = {name: [list(step) for step in part.waiting] for name, part in _stages(self.module).items()}
        mine = {
            "random": _random_state(),
            "metrics": copy.deepcopy(metric_states(self.module)),
            "waiting": copy.deepcopy(waiting),
        }
        ranks: list[Any] = [mine]
        if self.trainer.world_size > 1:
            ranks = [None] * self.trainer.world_size
            distributed.all_gather_object(ranks, mine)
        return {"ranks": ranks, "epoch_metrics": self._epoch_metrics()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.loaded = state_dict["ranks"]
        self.epoch_metrics = state_dict["epoch_metrics"]

    def _epoch_metrics(self) -> dict[str, float]:
        """Those of an epoch's end, which Lightning logs after its checkpoint: a run may be killed in between."""
        if self.ended_epoch != self.trainer.current_epoch:
            return {}
        named = self.trainer.callback_metrics.items()
        of_epoch = {
            name: float(value) for name, value in named if name.startswith("train/") and not name.endswith("_step")
        }
        return {"epoch": self.trainer.current_epoch, **of_epoch}

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.ended_epoch = trainer.current_epoch  # the module measures it now; its checkpoint comes last

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        in_epoch = training_position(trainer)[1] > 0
        if trainer.fit_loop.restarting:
            # A schedule asks for the length of the training before the checkpoint's progress is known: the loader
            # stands already, and its workers have begun with epoch 0.
            rebuild_training_loader(trainer)
        if self.loaded and len(self.loaded) == trainer.world_size:
            mine = self.loaded[trainer.global_rank]
            if in_epoch:
                _restore_metrics(pl_module, mine)
            _set_random_state(mine["random"])
        self.loaded = None
        _match_strides(trainer)
        for logger in trainer.loggers if trainer.is_global_zero else ():
            forget_steps(logger, trainer.global_step)
            add_missing_row(logger, trainer.global_step - 1, self.epoch_metrics)


def _stages(module: LightningModule) -> dict[str, StageMetrics]:
    return {name: part for name, part in module.named_modules() if isinstance(part, StageMetrics)}


def _restore_metrics(module: LightningModule, state: dict[str, Any]) -> None:
    """The sums of an epoch that has begun; where a metric is new, it has seen a part of the epoch only."""
    metrics = {name: part for name, part in module.named_modules() if isinstance(part, Metric)}
    for name in metrics.keys() & state["metrics"].keys():
        for key, value in state["metrics"][name].items():
            setattr(metrics[name], key, value)
    for name, stage in _stages(module).items():
        stage.waiting = [Step(*step) for step in state["waiting"].get(name, [])]


def _random_state() -> dict[str, Any]:
    """Of Python, NumPy and torch, in plain data that `torch.load` reads without running code."""
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002
    python = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
        "numpy": [
            torch.from_numpy(numpy["state"]["key"].astype(np.int64)),
            *(int(numpy["state"]["pos"]), int(numpy["has_gauss"]), float(numpy["gauss"])),
        ],
        "python": [python[0], list(python[1]), python[2]],
    }


def _set_random_state(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"].cpu())
    if state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"].cpu())
    key, position, has_gauss, gauss = state["numpy"]
    keys = {"key": key.cpu().numpy().astype(np.uint32), "pos": position}
    np.random.set_state({"bit_generator": "MT19937", "state": keys, "has_gauss": has_gauss, "gauss": gauss})  # noqa: NPY002
    version, values, gauss_next = state["python"]
    random.setstate((version, tuple(values), gauss_next))


def _match_strides(trainer: Trainer) -> None:
    """Lays the optimizer's state out as the weights are: fused kernels pair memory, which `channels_last` reorders."""
    for optimizer in trainer.optimizers:
        for parameter, state in optimizer.state.items():
            for key, value in state.items():
                if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                    state[key] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
