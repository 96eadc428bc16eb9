"""The parts of a network and their sizes."""

import logging

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities.model_summary import summarize

from .stage_metrics import StageMetrics

log = logging.getLogger(__name__)


class NetworkSummary(Callback):
    """Lists Lightning's summary of the module without its metrics, once, before training.

    Args:
        max_depth: Levels of nested modules; -1 lists all.
    """

    def __init__(self, max_depth: int = 2) -> None:
        self.max_depth = max_depth

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        summary = summarize(pl_module, max_depth=self.max_depth)
        hidden = tuple(name for name, part in pl_module.named_children() if isinstance(part, StageMetrics))
        rows = [("part", "type", "parameters")]
        rows += [
            (name, kind, f"{parameters:,}" if parameters else "")
            for name, kind, parameters in zip(summary.layer_names, summary.layer_types, summary.param_nums, strict=True)
            if not name.startswith(hidden)
        ]
        rows.append(("all", "", f"{summary.total_parameters:,}"))
        names, kinds, numbers = (max(map(len, column)) for column in zip(*rows, strict=True))
        for name, kind, number in rows:
            log.info("%s", f"{name:<{names}}  {kind:<{kinds}}  {number:>{numbers}}".rstrip())
        log.info("")
