"""What trials are compared by: the best value of a metric over the whole run."""

import csv
import math
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from ..errors import UserError
from ..run_record import read
from .directory import ENDED


class Objective(Callback):
    """Ends the sweep as soon as a trial has validated without measuring `metric`.

    Raises:
        UserError: names the metric together with what is logged.
    """

    def __init__(self, metric: str, sweep: str) -> None:
        self.metric, self.sweep = metric, Path(sweep)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        is_known = self.metric in trainer.callback_metrics
        if is_known or (trainer.sanity_checking and not self.metric.startswith("val/")):
            return
        if self.metric.startswith("train/") and not trainer.current_epoch:
            return  # measured when the epoch ends, after its validation
        names = ", ".join(sorted(trainer.callback_metrics))
        message = f"sweep.metric={self.metric} is not logged: choose one of {names}"
        if trainer.is_global_zero:
            (self.sweep / ENDED).write_text(f"{message}\n", encoding="utf-8")
        raise UserError(message)


def score(run: Path, metric: str | None, direction: str) -> float | None:
    """The best value of the metric (null: of the monitored one) in the run's directory; None where it has none."""
    if metric is None:
        best: Any = read(run).get("best_score")
        return best if best is not None and math.isfinite(best) else None
    file = run / "metrics.csv"
    if not file.exists():
        return None
    with file.open(encoding="utf-8", newline="") as lines:
        values = [float(row[metric]) for row in csv.DictReader(lines) if row.get(metric)]
    finite = [value for value in values if math.isfinite(value)]
    return (min if direction == "minimize" else max)(finite, default=None)
