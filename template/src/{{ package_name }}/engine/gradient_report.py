"""What the gradients do to each parameter (`debug=gradients`)."""

import csv
import logging
import math
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.optim import Optimizer

from .errors import UserError
from .path_options import short
from .sharded_strategy import ShardedStrategy

RECTIFIERS = (nn.ReLU, nn.ReLU6)
USUAL = (1e-4, 1e-2)  # relative change of a weight in a step
MOST_BARS = 60

log = logging.getLogger(__name__)


class GradientReport(Callback):
    """Measures every parameter over all steps: mean gradient norm, and mean norm of a step's change over its own norm.

    Units of a ReLU that are 0 for all samples of all steps are dead: nothing in front of them is trained any more.
    Norms are those before clipping. `gradients.csv` and `gradients.png` are written into the directory.

    Args:
        directory: The run directory.

    Raises:
        UserError: the weights are spread over devices.
    """

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)
        self.norms: dict[str, list[float]] = {}
        self.ratios: dict[str, list[float]] = {}
        self.missing: set[str] = set()
        self.alive: dict[str, Tensor] = {}
        self.hooks: list[Any] = []
        self.before: dict[str, Tensor] = {}

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if isinstance(trainer.strategy, ShardedStrategy):
            raise UserError("debug=gradients looks at whole weights: leave strategy=fsdp out")
        for name, part in pl_module.named_modules():
            if isinstance(part, RECTIFIERS):
                self.hooks.append(part.register_forward_hook(self._look_at(name)))

    def _look_at(self, name: str) -> Any:
        def hook(part: nn.Module, inputs: Any, output: Tensor) -> None:
            if part.training and output.ndim > 1:
                active = (output.detach() > 0).transpose(0, 1).flatten(1).any(1)  # [units]
                known = self.alive.get(name)
                is_same = known is not None and known.shape == active.shape
                self.alive[name] = known | active if known is not None and is_same else active

        return hook

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer) -> None:
        for name, parameter in pl_module.named_parameters():
            if not parameter.requires_grad:
                continue
            if parameter.grad is None:
                self.missing.add(name)
                continue
            self.norms.setdefault(name, []).append(float(parameter.grad.norm()))
            self.before[name] = parameter.detach().clone()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        parameters = dict(pl_module.named_parameters())
        for name, old in self.before.items():
            if size := float(old.norm()):
                self.ratios.setdefault(name, []).append(float((parameters[name].detach() - old).norm()) / size)
        self.before = {}

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        for hook in self.hooks:
            hook.remove()
        if not trainer.is_global_zero:
            return
        rows = {name: (_mean(norms), _mean(self.ratios.get(name, []))) for name, norms in self.norms.items()}
        dead = {name: (int((~alive).sum()), len(alive)) for name, alive in self.alive.items()}
        for line in [*table(rows), *findings(rows, sorted(self.missing - rows.keys()), dead)]:
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


def table(rows: dict[str, tuple[float, float]]) -> list[str]:
    """Mean gradient norm and mean relative update of each parameter."""
    width = max(map(len, rows), default=0)
    head = f"{'parameter':<{width}}  gradient norm  update / weight"
    return [head, *(f"{name:<{width}}  {norm:13.2e}  {ratio:15.2e}" for name, (norm, ratio) in rows.items()), ""]


def findings(rows: dict[str, tuple[float, float]], missing: list[str], dead: dict[str, tuple[int, int]]) -> list[str]:
    """What is unusual, a line each."""
    lines = [f"no gradient  {name}: the loss does not depend on it, or it is detached" for name in missing]
    lines += [f"zero         {name}: its gradient is 0 in every step" for name, (norm, _) in rows.items() if norm == 0]
    for name, (count, units) in dead.items():
        if count:
            lines.append(
                f"dead         {name}: {count} of {units} units are 0 for every sample: try a smaller optimizer.lr, "
                "warm-up, or model.net.activation=gelu"
            )
    weights = sorted(ratio for name, (norm, ratio) in rows.items() if name.endswith("weight") and ratio > 0)
    if weights and not USUAL[0] <= (middle := weights[len(weights) // 2]) <= USUAL[1]:
        cure = "larger" if middle < USUAL[0] else "smaller"
        lines.append(
            f"updates      a step changes the median weight by {middle:.1e} of itself, {USUAL[0]:.0e} to {USUAL[1]:.0e} "
            f"is usual: try a {cure} optimizer.lr"
        )
    return lines or ["nothing unusual: every parameter gets a gradient, and steps are of a usual size"]


def draw(rows: dict[str, tuple[float, float]]) -> Figure:
    """Two logarithmic bar charts side by side; of many parameters only the weights."""
    shown = {name: values for name, values in rows.items() if len(rows) <= MOST_BARS or name.endswith("weight")}
    names = list(shown)[::-1]
    figure = Figure(figsize=(10, max(3.0, 1.2 + 0.22 * len(names))), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, place, title in ((left, 0, "gradient norm"), (right, 1, "update / weight, of one step")):
        axes.barh(names, [shown[name][place] for name in names], color="#4c72b0")
        axes.set_xscale("log")
        axes.set_xlabel(title)
        axes.grid(axis="x", alpha=0.3)
        axes.tick_params(axis="y", labelsize=8)
        axes.margins(y=0.01)
    right.axvspan(*USUAL, color="#55a868", alpha=0.2, label="usual")
    right.legend(loc="lower right", fontsize=8)
    return figure
