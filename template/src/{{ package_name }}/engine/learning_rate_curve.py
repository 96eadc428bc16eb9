"""The loss over a learning rate that rises from step to step: where it falls fastest, and its picture."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

WINDOW = 0.5  # decades to either side that a line is fitted over, and 3 rates at least


@dataclass(frozen=True)
class Curve:
    """Losses of a training whose learning rate was multiplied by the same factor in every step.

    Attributes:
        rates: The learning rates, ascending.
        losses: The loss at each, up to the last finite one.
        smooth: The loss there on the line fitted to the losses within half a decade.
        slopes: The slope of that line, per decade.
    """

    rates: np.ndarray
    losses: np.ndarray
    smooth: np.ndarray
    slopes: np.ndarray

    @property
    def best(self) -> int:
        """Where the smoothed loss is least, before it explodes: it may come back, to what learns nothing any more."""
        start = self.smooth[0]
        limit = start + np.maximum(abs(start), start - np.minimum.accumulate(self.smooth))
        exploded = self.smooth > limit
        return int(self.smooth[: exploded.argmax() if exploded.any() else None].argmin())

    @property
    def steepest(self) -> int:
        """Where it falls fastest, before it is least."""
        return int(self.slopes[: self.best + 1].argmin())

    @property
    def fall(self) -> float:
        """From the start, where nothing was learned and nothing has exploded, to the least."""
        return float(min(self.losses[0], self.smooth[0]) - self.smooth[self.best])

    @property
    def noise(self) -> float:
        """Standard deviation of the losses around the smoothed ones, as far as these fall."""
        return float((self.losses - self.smooth)[: self.best + 1].std())


def fit_curve(rates: list[float], losses: list[float]) -> Curve:
    """Fits a line around each rate; at least 2 of them, finite losses."""
    decades, values = np.log10(rates), np.array(losses)
    reach = max(3, round(WINDOW / (decades[1] - decades[0])))
    lines = []
    for place, middle in enumerate(decades):
        near = slice(max(0, place - reach), place + reach + 1)
        lines.append(np.polyfit(decades[near] - middle, values[near], 1))
    slopes, smooth = np.array(lines).T
    return Curve(np.array(rates), values, smooth, slopes)


def draw(curve: Curve, suggestion: float | None, file: Path) -> None:
    """Draws the losses, the smoothed ones and, where there is one, the suggestion, as PNG."""
    figure = Figure(figsize=(8, 5), dpi=120, layout="constrained")
    axes = figure.subplots()
    axes.plot(curve.rates, curve.losses, color="0.6", linewidth=1, label="loss of a step")
    axes.plot(curve.rates, curve.smooth, color="#0072b2", linewidth=2, label="smoothed")
    if suggestion is not None:
        axes.axvline(suggestion, color="#d55e00", linestyle="--", label=f"suggested: {suggestion:.3g}")
        axes.plot(suggestion, curve.smooth[curve.steepest], "o", color="#d55e00", markersize=8)
        low, high = curve.losses.min(), curve.losses[: curve.best + 1].max()
        axes.set_ylim(low - 0.05 * (high - low), high + 0.3 * (high - low))  # what diverges leaves the picture
    axes.set_xscale("log")
    axes.set_xlim(curve.rates[0], curve.rates[-1])
    axes.set_xlabel("learning rate")
    axes.set_ylabel("training loss")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
