"""Where a value that is NaN or infinite comes from, and what ends the run because of it."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torchmetrics import Metric

from .errors import RunFailed
from .gradient_norm import values

ADVICE = "debug=anomaly names the operation"
Place = dict[str, int]  # step, epoch and batch of it, counted from 0 as in the files of the loggers


def place(trainer: Trainer) -> Place:
    """Where the training is."""
    return {"step": trainer.global_step, "epoch": trainer.current_epoch, "batch": trainer.fit_loop.batch_idx}


def fail(facts: dict[str, Any], advice: str = ADVICE) -> NoReturn:
    """Ends the run with the status `nonfinite`.

    Args:
        facts: `what` is not finite, the place, and `module`, `parameter`, `rank` where they are known.
        advice: What to do about it.

    Raises:
        RunFailed: all of it in one line.
    """
    origin = ""
    if facts.get("module"):
        batch = f"validation batch {facts['validation_batch']}, in " if "validation_batch" in facts else ""
        origin = f", first in {batch}the output of {facts['module']}"
    elif facts.get("parameter"):
        is_gradient = facts["what"] in ("the loss", "a gradient")
        origin = f", first in {'the gradient of ' if is_gradient else ''}{facts['parameter']}"
    rank = f" of rank {facts['rank']}" if "rank" in facts else ""
    where = f"step {facts['step']} (epoch {facts['epoch']}, batch {facts['batch']}{rank}; counted from 0)"
    raise RunFailed(f"{facts['what']} is not finite in {where}{origin}: {advice}", "nonfinite", facts)


def first_module(module: LightningModule, stage: str, batch: Any, batch_idx: int, random: Tensor) -> str | None:
    """Runs a batch once more; names the first part of the module whose output is not finite, its class and its input.

    Args:
        module: With the weights that the batch was computed with.
        stage: `training` or `validation`.
        batch, batch_idx: What the step gets.
        random: torch's random state before the batch, so that dropout drops the same.
    """
    found: list[str] = []

    def look(name: str) -> Any:
        def hook(part: nn.Module, inputs: Any, output: Any) -> None:
            if found or are_finite(output):
                return
            own = are_finite(list(part.parameters(recurse=False)))
            cause = "whose weights are not finite" if not own else "whose input and weights are finite"
            cause = cause if are_finite(inputs) else "whose input was not finite already"
            found.append(f"{name} ({type(part).__name__}), {cause}")

        return hook

    parts = [(name, part) for name, part in module.named_modules() if name and not isinstance(part, Metric)]
    handles = [part.register_forward_hook(look(name)) for name, part in parts]
    try:
        with (
            suppress(Exception),  # what is to be said of the run matters more than why this failed
            torch.no_grad(),
            torch.random.fork_rng(devices=[]),
            torch.compiler.set_stance("force_eager"),  # compiled code does not see the hooks
            module.trainer.precision_plugin.forward_context(),
        ):
            torch.set_rng_state(random)
            getattr(module, f"{stage}_step")(batch, batch_idx)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


def first_validation_module(module: LightningModule) -> dict[str, Any]:
    """The first batch of one validation loader in which an output is not finite, and whose it is."""
    trainer = module.trainer
    if isinstance(loader := trainer.val_dataloaders, DataLoader) and trainer.world_size == 1:
        for index, batch in enumerate(loader):
            moved = trainer.strategy.batch_to_device(batch)
            if found := first_module(module, "validation", moved, index, torch.get_rng_state()):
                return {"validation_batch": index, "module": found}
    return {}


def first_gradient(module: nn.Module) -> str | None:
    """The parameter that comes first on the way back from the loss among those whose gradient is not finite."""
    parameters = reversed(list(module.named_parameters()))
    return next((name for name, own in parameters if own.grad is not None and not are_finite(own.grad)), None)


def first_weight(module: nn.Module) -> str | None:
    """The first parameter that is not finite."""
    return next((name for name, own in module.named_parameters() if not are_finite(own)), None)


def are_finite(value: Any) -> bool:
    """Whether all numbers of all tensors in nested tuples, lists and dicts are."""
    return all(bool(values(tensor).isfinite().all()) for tensor in _tensors(value))


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)
