"""What trials are compared by: the best value of a metric over the whole run."""

import csv
import math
from pathlib import Path
from typing import Any

from ..run_record import read


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
