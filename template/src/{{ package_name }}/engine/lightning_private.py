"""Private names of Lightning and torch that the engine needs; `tests/test_engine_parts.py` notices a lost one."""

from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import RichProgressBar
from torch import nn
from torch.optim import Optimizer
from torchmetrics import Metric

LENGTHS_IN_STATE = ("total_steps", "_schedule_phases")  # what a state of OneCycleLR holds of the training's length


class PlainHookName(LightningModule):
    """Stores the name of the running hook as a plain attribute.

    Lightning sets it some 56 times a step through `nn.Module.__setattr__`, which looks for parameters, buffers and
    modules each time: 6 % of a small model's step.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_current_fx_name":
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)


class CountingFromOne(RichProgressBar):
    """Lightning's bar, with the first epoch as epoch 1, as in the lines of `engine.progress`."""

    def _get_train_description(self, current_epoch: int) -> str:
        epochs = self.trainer.max_epochs
        return f"epoch {current_epoch + 1}" + (f"/{epochs}" if epochs is not None and epochs > 0 else "")


def unscale_before_clipping(optimizer: Optimizer) -> None:
    """Lets Lightning unscale the gradients of a fused optimizer, as it does for every other one.

    A fused optimizer announces that it unscales by itself. Lightning then refuses to clip, and logged norms would be
    those of scaled gradients.
    """
    if hasattr(optimizer, "_step_supports_amp_scaling"):
        optimizer._step_supports_amp_scaling = False  # type: ignore[attr-defined]


def leave_signals_alone(trainer: Trainer) -> None:
    """Keeps Lightning from handling signals, which it does by a broadcast from inside the handler.

    With several processes it also broadcasts in every step, on the device, and waits for it.
    """
    trainer._signal_connector.register_signal_handlers = lambda: None  # type: ignore[method-assign]
    trainer.fit_loop.epoch_loop._broadcast_sigterm_tensor = lambda: None  # type: ignore[method-assign]


def leave(trainer: Trainer, now: bool) -> None:
    """Makes Lightning end the training after the hooks of this step by a SIGTERMException, or not end it."""
    trainer._signal_connector.received_sigterm = now


def window_is_open(trainer: Trainer) -> bool:
    """Whether the batch that was just processed waits for others before an optimizer step."""
    return trainer.fit_loop.epoch_loop._should_accumulate()


def epoch_is_over(trainer: Trainer) -> bool:
    """Whether the batch that was just processed is the epoch's last."""
    return trainer.fit_loop.epoch_loop._num_ready_batches_reached()


def rebuild_training_loader(trainer: Trainer) -> None:
    """Asks the data module for the training loader again."""
    trainer.fit_loop._combined_loader = None
    trainer.fit_loop.setup_data()


def count_epochs_alike(trainer: Trainer) -> None:
    """Makes a training by `max_steps` count its epochs as any other does; resumed, it would begin with an empty one."""
    trainer.fit_loop._iteration_based_training = lambda: False  # type: ignore[method-assign]


def metric_states(module: nn.Module) -> dict[str, dict[str, Any]]:
    """The running sums of every metric in a module, by its name; reset and computed values are torchmetrics' own."""
    return {
        name: {"_update_count": part._update_count, **{key: getattr(part, key) for key in part._defaults}}
        for name, part in module.named_modules()
        if isinstance(part, Metric)
    }
