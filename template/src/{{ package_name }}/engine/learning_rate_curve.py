"""The loss over a learning rate that rises from step to step: where it falls fastest, and its picture."""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

WINDOW = 0.25  # decades to either side that a line is fitted over, and 3 rates at least
SLIGHT, LARGE = 0.1, 0.2  # shares of the fall
FIRST = 10  # losses that tell how far they differ by chance, and that the picture always shows
CLEAR = 4  # standard deviations of the noise, by which a loss that is noise alone falls in less than 1 % of cases
TINY = 1e-6  # height of the picture of a loss that never changes


@dataclass(frozen=True)
class Curve:
    """Losses of a training whose learning rate was multiplied by the same factor in every step.

    Attributes:
        rates: The learning rates, ascending.
        losses: The loss at each, up to the last finite one.
        smooth: The loss there on the line fitted to the losses within a quarter of a decade.
        slopes: The slope of that line, per decade.
    """

    rates: np.ndarray
    losses: np.ndarray
    smooth: np.ndarray
    slopes: np.ndarray

    @property
    def explodes(self) -> int:
        """Where the smoothed loss is first twice what it was before the first step; the number of rates if never."""
        start = self.losses[0]
        by_chance = np.ptp(self.losses[:FIRST])  # a noisy loss may begin small
        return _first(self.smooth - start > max(abs(start), by_chance))

    @property
    def best(self) -> int:
        """Where the smoothed loss is least, before it explodes or gives back a part of its fall."""
        least = np.minimum.accumulate(self.smooth)
        fallen = self.smooth[0] - least
        rises = (fallen > SLIGHT * fallen.max()) & (self.smooth - least > LARGE * fallen)
        end = min(self.explodes, _first(rises))
        return int(self.smooth[: max(1, end)].argmin())

    @property
    def steepest(self) -> int:
        """Where it falls fastest, before it is least."""
        return int(self.slopes[: self.best + 1].argmin())

    @property
    def suggestion(self) -> float | None:
        """The rate at which it falls fastest, if the fall is clear and lies within the rates."""
        return float(self.rates[self.steepest]) if self.falls and not self.is_cut_off else None

    @property
    def falls(self) -> bool:
        """Whether it falls by more than its noise."""
        return self.fall > CLEAR * self.noise

    @property
    def is_cut_off(self) -> bool:
        """Whether it falls fastest where the rates end, and might fall faster beyond."""
        return self.best == len(self.rates) - 1 and self.rates[-1] < 10**WINDOW * self.rates[self.steepest]

    @property
    def fall(self) -> float:
        """From the start, where nothing was learned and nothing has exploded, to the least."""
        return float(min(self.losses[0], self.smooth[0]) - self.smooth[self.best])

    @property
    def noise(self) -> float:
        """Standard deviation of the losses around the smoothed ones, as far as these fall, over 20 rates at least."""
        return float((self.losses - self.smooth)[: max(self.best + 1, 20)].std())


def fit_curve(rates: list[float], losses: list[float]) -> Curve:
    """Fits a line around each rate; at least 2 of them, finite losses."""
    decades, values = np.log10(rates), np.array(losses)
    reach = max(3, round(WINDOW / np.diff(decades).mean()))
    lines = []
    for place, middle in enumerate(decades):
        near = slice(max(0, place - reach), place + reach + 1)
        lines.append(np.polyfit(decades[near] - middle, values[near], 1))
    slopes, smooth = np.array(lines).T
    return Curve(np.array(rates), values, smooth, slopes)


def _first(is_so: np.ndarray) -> int:
    return int(is_so.argmax()) if is_so.any() else len(is_so)


def draw(curve: Curve) -> Figure:
    """The losses, the smoothed ones and, where there is one, the suggestion."""
    figure = Figure(figsize=(8, 5), dpi=120, layout="constrained")
    axes = figure.subplots()
    axes.plot(curve.rates, curve.losses, color="0.6", linewidth=1, label="loss of a step")
    axes.plot(curve.rates, curve.smooth, color="#0072b2", linewidth=2, label="smoothed")
    if (suggestion := curve.suggestion) is not None:
        axes.axvline(suggestion, color="#d55e00", linestyle="--", label=f"suggested: {suggestion:.3g}")
        axes.plot(suggestion, curve.smooth[curve.steepest], "o", color="#d55e00", markersize=8)
    low, high = curve.losses.min(), curve.losses[: max(curve.best, FIRST)].max()
    # what explodes leaves the picture
    axes.set_ylim(low - 0.05 * (high - low) - TINY, high + 0.3 * (high - low) + TINY)
    axes.set_xscale("log")
    axes.set_xlim(curve.rates[0], curve.rates[-1])
    axes.set_xlabel("learning rate")
    axes.set_ylabel("training loss")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure
