"""Charts of a sweep: the objective over trials and parameters, and what the parameters explain of it."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .charts import INK, PALETTE, SIZE, chart, is_wide, make_logarithmic, stretch
from .experiments import Run, label, shown, telling_keys
from .learning_rate import KEY, RangeTest
from .table import spread

MOST_PARAMETERS = 8


def sweep_charts(trials: list[Run]) -> tuple[list[str], list[tuple[str, float]]]:
    """The charts, and the parameters with the share that each explains, the largest first.

    Trials without a finite objective appear in the first chart only.
    """
    scored = [trial for trial in trials if math.isfinite(trial.best)]
    charts = [_history(trials)]
    if len(scored) < 2:
        return charts, []
    keys = telling_keys(scored, also_shared=False)
    importance = sorted(((label(key), explained(scored, key)) for key in keys), key=lambda pair: (-pair[1], pair[0]))
    ranked = sorted(keys, key=lambda key: [name for name, _ in importance].index(label(key)))[:MOST_PARAMETERS]
    if len(ranked) > 1:
        charts.append(_parallel(scored, ranked))
    return [*charts, *(_slice(scored, key) for key in ranked)], importance


def _history(trials: list[Run]) -> str:
    metric, sign = trials[0].metric, trials[0].sign

    def draw(axes: Axes, tooltips: dict[str, str]) -> None:
        values = np.array([trial.best for trial in trials])
        numbers = np.arange(len(trials))
        finite = np.isfinite(values)
        for number in numbers[finite]:
            gid = f"t{number}"
            axes.plot(number, values[number], "o", color=PALETTE[0], markersize=4, gid=gid)
            tooltips[gid] = f"{trials[number].directory.name}: {metric} {values[number]:.4g}"
        if finite.any():
            best = sign * np.minimum.accumulate(sign * np.where(finite, values, sign * np.inf))
            shown_from = int(np.argmax(finite))
            axes.step(numbers[shown_from:], best[shown_from:], where="post", color=PALETTE[1], linewidth=1.4)
        stretch(axes, "y", values)
        _crosses(axes, numbers[~finite], 0)
        axes.set_xlabel("trial (line: the best until then, ×: no value)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))

    return chart(f"{metric} of every trial", draw)


def _crosses(axes: Axes, places: Sequence[float] | np.ndarray, height: float) -> None:
    """Marks of trials without a value, at the bottom (0) or at the top (1)."""
    where = axes.get_xaxis_transform()
    axes.plot(places, [height] * len(places), "x", color=INK, markersize=5, clip_on=False, transform=where)


def range_chart(test: RangeTest) -> str:
    """The final loss of every run and the mean of each rate, with the steepest rate and the largest stable one."""

    def draw(axes: Axes, tooltips: dict[str, str]) -> None:
        make_logarithmic(axes, "x")
        finite = {
            rate: kept for rate, losses in test.losses.items() if (kept := [x for x in losses if math.isfinite(x)])
        }
        axes.plot(list(finite), [spread(losses).mean for losses in finite.values()], color=PALETTE[0], linewidth=1.4)
        for number, (rate, losses) in enumerate(finite.items()):
            gid, places = f"t{number}", [rate] * len(losses)
            axes.plot(places, losses, "o", color=PALETTE[0], markersize=4, alpha=0.7, gid=gid)
            tooltips[gid] = f"{rate:g}: {spread(losses)}"
        marks = (("steepest", test.steepest, PALETTE[2], "--"), ("largest stable", test.stable, PALETTE[1], ":"))
        for name, rate, colour, style in marks:
            if rate is not None:
                axes.axvline(rate, color=colour, linestyle=style, label=f"{name}: {rate:g}")
        if test.stable is not None:
            axes.legend(frameon=False, fontsize=7)
        stretch(axes, "y", [loss for losses in finite.values() for loss in losses])
        _crosses(axes, [rate for rate, losses in test.losses.items() if not all(map(math.isfinite, losses))], 1)
        axes.set_xlabel(f"{KEY} (×: failed or not finite)")

    return chart(f"{test.measure} at the end over the learning rate", draw)


def _positions(trials: Sequence[Run], key: str) -> tuple[np.ndarray, bool, list[str]]:
    """Where the trials stand on a parameter's axis, whether it is logarithmic, and its names if it has no numbers."""
    values = [trial.config.get(key) for trial in trials]
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300 for value in values):
        numbers = np.array(values, dtype=float)
        return numbers, is_wide(numbers), []
    names = sorted({shown(trial, key) for trial in trials})
    return np.array([float(names.index(shown(trial, key))) for trial in trials]), False, names


def explained(trials: Sequence[Run], key: str) -> float:
    """The share of the variance of the trials' ranks that a parameter explains alone, from 0 to 1.

    The adjusted correlation ratio (epsilon squared, Kelley 1935) of the ranks of the objective over the parameter's
    values; where most values occur once, neighbouring ones are put into a few classes.
    """
    positions, _, _ = _positions(trials, key)
    ranks = np.argsort(np.argsort([trial.best for trial in trials])).astype(float)
    values, classes = np.unique(positions, return_inverse=True)
    if len(values) > max(2, len(trials) // 2):
        most = max(2, min(5, len(trials) // 3))
        classes = classes * most // len(values)
    count = len(np.unique(classes))
    if len(trials) <= count or count < 2:
        return 0.0
    within = sum(((ranks[classes == part] - ranks[classes == part].mean()) ** 2).sum() for part in np.unique(classes))
    total = ((ranks - ranks.mean()) ** 2).sum()
    return max(0.0, float(1 - within / (len(trials) - count) * (len(trials) - 1) / total))


def _slice(trials: Sequence[Run], key: str) -> str:
    positions, _, names = _positions(trials, key)

    def draw(axes: Axes, tooltips: dict[str, str]) -> None:
        axes.plot(positions, [trial.best for trial in trials], "o", color=PALETTE[0], markersize=4, alpha=0.7)
        axes.set_xlabel(label(key))
        stretch(axes, "y", [trial.best for trial in trials])
        if not names:
            stretch(axes, "x", positions)
        else:
            short = [name if len(name) <= 20 else f"{name[:19]}…" for name in names]
            axes.set_xticks(range(len(names)), short, rotation=30 if max(map(len, names)) > 8 else 0)
            axes.margins(x=0.2)

    return chart(f"{trials[0].metric} over {label(key)}", draw)


def _parallel(trials: Sequence[Run], keys: Sequence[str]) -> str:
    """A line a trial through its parameters and its objective; the best fifth in colour."""
    metric, sign = trials[0].metric, trials[0].sign
    scores = np.array([trial.best for trial in trials])

    def draw(axes: Axes, tooltips: dict[str, str]) -> None:
        columns: list[np.ndarray] = []
        ends: list[tuple[str, str]] = []
        objective: tuple[np.ndarray, bool, list[str]] = (scores, False, [])
        for values, log, names in [*(_positions(trials, key) for key in keys), objective]:
            scaled = np.log(values) if log else values
            least, most = scaled.min(), scaled.max()
            columns.append((scaled - least) / (most - least) if most > least else np.full(len(scaled), 0.5))
            ends.append((names[0], names[-1]) if names else (f"{values.min():.3g}", f"{values.max():.3g}"))
        order = np.argsort(-sign * scores)  # the best is drawn last
        for place, number in enumerate(order):
            is_good = place >= len(order) * 0.8
            heights = [column[number] for column in columns]
            colour, width = (PALETTE[1], 1.4) if is_good else (PALETTE[-1], 0.7)
            axes.plot(heights, color=colour, linewidth=width, gid=f"t{number}")
            tooltips[f"t{number}"] = f"{trials[number].directory.name}: {metric} {scores[number]:.4g}"
        for place, (low, high) in enumerate(ends):
            axes.text(place, -0.03, low, ha="center", va="top", fontsize=7)
            axes.text(place, 1.03, high, ha="center", va="bottom", fontsize=7)
        names = [*(label(key).rpartition(".")[2] for key in keys), metric]
        axes.set_xticks(range(len(names)), names, rotation=20 if len(names) > 4 else 0)
        axes.tick_params(axis="x", length=0, pad=12)
        axes.set_yticks([])
        axes.set_ylim(-0.02, 1.02)
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.set_title(axes.get_title(loc="left"), pad=16)

    return chart("Parallel coordinates (the best fifth in colour)", draw, (max(SIZE[0], 0.9 * len(keys) + 1.5), 3.0))
