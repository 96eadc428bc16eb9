"""The parts of a network, what goes through them, and what they cost."""

import logging
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities.model_summary.model_summary import LayerSummary, get_human_readable_count
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from .sharded_strategy import ShardedStrategy
from .stage_metrics import StageMetrics

Rows = list[tuple[str, ...]]

log = logging.getLogger(__name__)


class NetworkSummary(Callback):
    """Lists the parts with their output shapes, parameters and floating-point operations, before the first step.

    Shapes and operations are those of one sample: the first of the first batch, or the module's `example_input_array`,
    that goes through the module's `forward` once more, in evaluation mode and without changing a random state.

    Args:
        max_depth: Levels of nested modules; -1 lists all.
    """

    def __init__(self, max_depth: int = 2) -> None:
        self.max_depth = max_depth

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        self.on_train_batch_start = None  # type: ignore[assignment, method-assign]  # Lightning passes over it from now on
        if not trainer.is_global_zero:
            return
        is_sharded = isinstance(trainer.strategy, ShardedStrategy)  # its forward needs all ranks
        sample = None if is_sharded else _first_sample(pl_module, batch)
        with trainer.precision_plugin.forward_context():
            for line in summary(pl_module, sample, self.max_depth):
                log.info("%s", line)
        log.info("")


def summary(module: nn.Module, sample: Tensor | None, max_depth: int = -1) -> list[str]:
    """The table of a module's parts and a line of sums.

    Args:
        module: Its parts that hold metrics are left out.
        sample: What `module.forward` takes, with a first dimension of 1; None leaves out all that depends on it.
        max_depth: Levels of nested modules; -1 lists all.
    """
    parts = {name: part for name, part in module.named_modules() if name and not _is_hidden(module, name)}
    layers = {name: LayerSummary(part) for name, part in parts.items() if max_depth < 0 or name.count(".") < max_depth}
    operations, activations, remark = _through(module, sample, parts)
    for layer in layers.values():
        layer.detach_hook()
    root = type(module).__name__
    rows: Rows = [("part", "type", "output", "parameters", "FLOPs")]
    for name, layer in layers.items():
        count = f"{layer.num_parameters:,}" if layer.num_parameters else ""
        flops = sum(operations.get(f"{root}.{name}", {}).values())
        shape = str(layer.out_size) if isinstance(layer.out_size, list) else ""
        rows.append((name, layer.layer_type, shape, count, get_human_readable_count(flops) if flops else ""))
    parameters = list(module.parameters())
    total = sum(parameter.numel() for parameter in parameters)
    trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    size = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    all_flops = sum(operations.get("Global", {}).values())
    rows.append(("all", "", "", f"{total:,}", get_human_readable_count(all_flops) if all_flops else ""))
    uncounted = [
        name
        for name, part in parts.items()
        if not isinstance(part, (nn.Embedding, nn.EmbeddingBag))
        and any(parameter.ndim > 1 for parameter in part.parameters(recurse=False))
        and not operations.get(f"{root}.{name}")
    ]
    sums = f"{size / 1e6:.2f} MB of parameters, {'all' if trained == total else f'{trained:,}'} of them trained"
    if activations:
        least = f"at least (those of {', '.join(uncounted)} are not counted) " if uncounted else ""
        flops = get_human_readable_count(all_flops).rstrip()
        sums += f"; one sample takes {least}{flops} FLOPs and {activations / 1e6:.2f} MB of outputs"
    return [*_columns(rows), sums, *remark]


def _first_sample(module: LightningModule, batch: Any) -> Tensor | None:
    if isinstance(module.example_input_array, Tensor):
        return module.example_input_array.to(module.device)[:1]
    first = batch[0] if isinstance(batch, (list, tuple)) and batch else batch
    return first[:1] if isinstance(first, Tensor) and first.ndim else None


def _through(
    module: nn.Module, sample: Tensor | None, parts: dict[str, nn.Module]
) -> tuple[dict[str, dict[Any, int]], int, list[str]]:
    """Operations by part, bytes that the innermost parts put out, and what went wrong."""
    if sample is None:
        return {}, 0, []
    put_out = 0

    def add(part: nn.Module, inputs: Any, output: Any) -> None:
        nonlocal put_out
        found = output if isinstance(output, (list, tuple)) else [output]
        put_out += sum(part.nbytes for part in found if isinstance(part, Tensor))

    leaves = [part for part in parts.values() if not any(part.children())]
    hooks = [part.register_forward_hook(add) for part in leaves]
    training = [part for part in module.modules() if part.training]
    counter = FlopCounterMode(display=False)
    devices = [sample.device] if sample.device.type == "cuda" else []
    try:
        for part in training:
            part.training = False
        with torch.no_grad(), torch.random.fork_rng(devices), torch.compiler.set_stance("force_eager"), counter:
            module(sample)
    except Exception as error:  # forward may take something else: the step that follows says so, if it is a mistake
        return {}, 0, [f"shapes and FLOPs are left out: {type(module).__name__}.forward(one sample) raised {error!r}"]
    finally:
        for part in training:
            part.training = True
        for hook in hooks:
            hook.remove()
    return counter.get_flop_counts(), put_out, []


def _is_hidden(module: nn.Module, name: str) -> bool:
    return isinstance(getattr(module, name.partition(".")[0]), StageMetrics)


def _columns(rows: Rows) -> list[str]:
    """Text to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:<{width}}" if place < 3 else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
