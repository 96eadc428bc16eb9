"""What the gradients do to each parameter (`debug=gradients`)."""

import csv
import logging
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.optim import Optimizer

from .errors import UserError
from .path_options import short
from .sharded_strategy import ShardedStrategy

RECTIFIERS = (nn.ReLU, nn.ReLU6)
USUAL = (1e-4, 1e-2)  # relative change of a weight in a step
MOST_ROWS = 60

Rows = dict[str, tuple[float, float]]

log = logging.getLogger(__name__)


class GradientReport(Callback):
    """Measures every parameter over all steps: mean gradient norm, and mean norm of a step's change over its own norm.

    Norms are those before clipping. Units of an `nn.ReLU`, the second dimension of what it puts out, that are 0 for all
    samples of all steps are dead: nothing in front of them is trained any more. `gradients.csv` and `gradients.png` are
    written into the directory.

    Args:
        directory: The run directory.

    Raises:
        UserError: the weights are spread over devices.
    """

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)
        self.norms: defaultdict[str, list[float]] = defaultdict(list)
        self.ratios: defaultdict[str, list[float]] = defaultdict(list)
        self.alive: dict[str, Tensor] = {}
        self.calls: Counter[str] | None = None  # of each rectifier in this batch; None outside of the forward pass
        self.hooks: list[Any] = []
        self.before: dict[str, Tensor] = {}

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if isinstance(trainer.strategy, ShardedStrategy):
            raise UserError("debug=gradients looks at whole weights: leave strategy=fsdp out")
        for name, part in pl_module.named_modules():
            if isinstance(part, RECTIFIERS):
                self.hooks.append(part.register_forward_hook(self._look_at(name)))

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        self.calls = Counter()

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:
        self.calls = None  # gradient checkpointing calls again

    def _look_at(self, name: str) -> Any:
        def hook(part: nn.Module, inputs: Any, output: Tensor) -> None:
            if self.calls is None or output.ndim < 2:
                return
            self.calls[name] += 1
            place = name if self.calls[name] == 1 else f"{name} (call {self.calls[name]})"
            active = (output.detach() > 0).transpose(0, 1).flatten(1).any(1)  # [units]
            known = self.alive.get(place)
            self.alive[place] = active if known is None or known.shape != active.shape else known | active

        return hook

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer) -> None:
        for name, parameter in pl_module.named_parameters():
            if parameter.grad is not None:
                self.norms[name].append(float(parameter.grad.norm()))
                self.before[name] = parameter.detach().clone()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        parameters = dict(pl_module.named_parameters())
        for name, old in self.before.items():
            if size := float(old.norm()):
                self.ratios[name].append(float((parameters[name].detach() - old).norm()) / size)
        self.before.clear()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        for hook in self.hooks:
            hook.remove()
        if not trainer.is_global_zero:
            return
        trained = [name for name, parameter in pl_module.named_parameters() if parameter.requires_grad]
        rows = {name: (_mean(self.norms[name]), _mean(self.ratios[name])) for name in trained}
        frozen = len(list(pl_module.parameters())) - len(trained)
        dead = {place: (int((~alive).sum()), len(alive)) for place, alive in self.alive.items()}
        for line in [*table(rows), "", *findings(rows, dead, frozen)]:
            log.info("%s", line)
        with (self.directory / "gradients.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["parameter", "gradient_norm", "update_to_weight"])
            writer.writerows([name, *values] for name, values in rows.items())
        picture = self.directory / "gradients.png"
        draw(rows).savefig(picture, dpi=120)
        log.info("picture    %s", short(picture))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def table(rows: Rows) -> list[str]:
    """Mean gradient norm and mean relative update of each parameter."""
    width = max(map(len, ("parameter", *rows)))
    lines = [f"{'parameter':<{width}}  gradient norm  update / weight"]
    for name, values in rows.items():
        norm, ratio = ("none" if math.isnan(value) else f"{value:.2e}" for value in values)
        lines.append(f"{name:<{width}}  {norm:>13}  {ratio:>15}")
    return lines


def findings(rows: Rows, dead: dict[str, tuple[int, int]], frozen: int = 0) -> list[str]:
    """What is unusual, a line each.

    Args:
        rows: Gradient norm, NaN where there was none, and relative update of each parameter.
        dead: Of each rectifier, the number of dead units and of all.
        frozen: Number of parameters that are not to be trained.
    """
    lines = [
        f"no gradient  {name}: the loss does not depend on it, or it is detached"
        for name, (norm, _) in rows.items()
        if math.isnan(norm)
    ]
    lines += [f"zero         {name}: its gradient is 0 in every step" for name, (norm, _) in rows.items() if norm == 0]
    lines += [
        f"dead         {place}: {count} of {units} units are 0 for every sample: try a smaller optimizer.lr, "
        "warm-up, or another activation, such as GELU"
        for place, (count, units) in dead.items()
        if count
    ]
    least, most = USUAL
    weights = sorted(ratio for name, (norm, ratio) in rows.items() if _is_weight(name) and norm > 0 and ratio >= 0)
    if weights and not least <= (middle := weights[len(weights) // 2]) <= most:
        lines.append(
            f"updates      a step changes the median weight by {middle:.1e} of itself, {least:.0e} to {most:.0e} is "
            f"usual: try a {'larger' if middle < least else 'smaller'} optimizer.lr"
        )
    if not lines:
        lines = ["nothing unusual: every parameter gets a gradient, and steps are of a usual size"]
    if frozen:
        lines.append(f"frozen       {frozen} parameters are not trained (requires_grad is off)")
    return lines


def _is_weight(name: str) -> bool:
    return name.endswith("weight")


def draw(rows: Rows) -> Figure:
    """Gradient norms and relative updates side by side; of many parameters only the weights.

    What has no gradient, or 0, gets a cross at the left.
    """
    names = [name for name in rows if len(rows) <= MOST_ROWS or _is_weight(name)]
    figure = Figure(figsize=(11, min(1.6 + 0.24 * len(names), 400)), layout="constrained")
    norms, updates = figure.subplots(1, 2, sharey=True)
    entries: dict[str, Any] = {}
    for place, axes in enumerate((norms, updates)):
        _draw_values(axes, {name: rows[name][place] for name in names})
        axes.set_xscale("log")
        axes.grid(alpha=0.3)
        entries |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    norms.set_xlabel("gradient norm, before clipping")
    norms.set_yticks(range(len(names)), names, fontsize=8)
    norms.set_ylim(len(names) - 0.4, -0.6)
    updates.set_xlabel("change in one step / size of the parameter")
    entries["usual for weights"] = updates.axvspan(*USUAL, color="#2e8b57", alpha=0.15)
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=4, fontsize=9)
    return figure


def _draw_values(axes: Axes, values: dict[str, float]) -> None:
    there = [(value, y, _is_weight(name)) for y, (name, value) in enumerate(values.items()) if value > 0]
    for are_weights, colour, label in ((True, "#1f4e9c", "weights"), (False, "#9aa7b8", "biases and others")):
        if points := [(value, y) for value, y, is_weight in there if is_weight == are_weights]:
            axes.plot(*zip(*points, strict=True), "o", color=colour, label=label)
    if absent := [y for y, value in enumerate(values.values()) if not value > 0]:
        edge = {"transform": axes.get_yaxis_transform(), "clip_on": False, "zorder": 3}
        axes.plot([0] * len(absent), absent, "X", color="#c0392b", label="none, or 0", **edge)
