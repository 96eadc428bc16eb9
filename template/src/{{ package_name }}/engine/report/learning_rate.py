"""The range test of a sweep over the learning rate: the steepest rate and the largest stable one."""

import math
from itertools import takewhile
from statistics import linear_regression
from typing import NamedTuple

from .experiments import Run, differing_keys
from .table import spread

KEY = "optimizer.lr"
FEWEST_RATES = 5
LEAST_RATIO = 10  # of the largest rate to the smallest
WINDOW = 0.5  # decades to either side that a slope is fitted over, at least the neighbours
MARGIN = 0.1  # of the way from the least loss back to that of the smallest rate


class RangeTest(NamedTuple):
    """What the learning rates of a sweep led to.

    Attributes:
        measure: What is compared: the training loss, or the metric of runs that have none.
        losses: The final values of the runs of each rate, the smallest rate first; NaN for a run that failed.
        steepest: See `steepest_rate`.
        stable: See `largest_stable_rate`.
    """

    measure: str
    losses: dict[float, list[float]]
    steepest: float | None
    stable: float | None

    @property
    def words(self) -> str:
        if self.stable is None:
            return "No learning rate is stable: see why the runs failed, or try smaller ones."
        steepest = f"none, {self.measure} is best at the smallest: try smaller ones"
        if self.steepest is not None:
            steepest = f"{self.steepest:g}, where {self.measure} improves fastest per decade"
        more = ", the largest tried: try larger ones" if self.stable == max(self.losses) else ""
        return f"Steepest learning rate: {steepest}. Largest stable learning rate: {self.stable:g}{more}."


def range_test(trials: list[Run]) -> RangeTest | None:
    """None unless the trials differ in the learning rate alone, with enough rates over at least a decade.

    Trials that go on, were interrupted or ran out of memory say nothing of their rate and are left out.
    """
    if differing_keys(trials) != [KEY]:
        return None
    done = [trial for trial in trials if trial.config and trial.status in ("finished", "failed", "nonfinite")]
    has_loss = any("train/loss" in trial.history for trial in done)
    losses: dict[float, list[float]] = {}
    for trial in done:
        rate = trial.config.get(KEY)
        if not isinstance(rate, (int, float)) or rate <= 0:
            return None
        value = trial.history.get("train/loss", [math.nan])[-1] if has_loss else trial.last
        losses.setdefault(rate, []).append(value if trial.status == "finished" else math.nan)
    losses = dict(sorted(losses.items()))
    if len(losses) < FEWEST_RATES or max(losses) < LEAST_RATIO * min(losses):
        return None
    sign = 1 if has_loss else done[0].sign
    means = {
        rate: sign * spread(values).mean if all(map(math.isfinite, values)) else math.nan
        for rate, values in losses.items()
    }
    measure = "train/loss" if has_loss else done[0].metric
    return RangeTest(measure, losses, steepest_rate(means), largest_stable_rate(means))


def steepest_rate(losses: dict[float, float]) -> float | None:
    """The rate with the most negative slope of the loss over log10(rate), from the second rate to that of least loss.

    The slope at a rate is that of the line fitted through it, its neighbours, and whatever lies within half a decade.
    Rates whose loss is not finite, and those above the least loss, take no part. None where no rate is left.
    """
    finite = {rate: loss for rate, loss in losses.items() if math.isfinite(loss)}
    best = min(finite, key=finite.__getitem__, default=0.0)
    falling = [(math.log10(rate), loss, rate) for rate, loss in finite.items() if rate <= best]
    slopes: dict[float, float] = {}
    for place, (middle, _, rate) in enumerate(falling[1:], 1):
        near = [
            (decade, loss)
            for other, (decade, loss, _) in enumerate(falling)
            if abs(other - place) == 1 or abs(decade - middle) <= WINDOW
        ]
        slopes[rate] = linear_regression(*zip(*near, strict=True)).slope
    return min(slopes, key=slopes.__getitem__, default=None)


def largest_stable_rate(losses: dict[float, float]) -> float | None:
    """The last rate, going up from that of least loss, before one whose loss is not finite or above the margin.

    The margin is a tenth of the way from the least loss back to the loss of the smallest rate, which is nearly that of
    an untrained model. None where no loss is finite.
    """
    finite = {rate: loss for rate, loss in losses.items() if math.isfinite(loss)}
    if not finite:
        return None
    best = min(finite, key=finite.__getitem__)
    limit = finite[best] + MARGIN * (finite[min(finite)] - finite[best])
    return list(takewhile(lambda rate: losses[rate] <= limit, (rate for rate in losses if rate >= best)))[-1]
