"""Charts as SVG that stands in a page: its colours are the page's, in light and in dark mode."""

import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter, PercentFormatter

from .experiments import Run
from .table import Configuration

# Okabe and Ito's palette for all kinds of colour vision, then a grey; style.css has a variable for each
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#808080")
INK, RULE = "#010203", "#040506"  # stand for the page's text and lines
SIZE = (4.4, 2.8)  # inches, small enough for a phone

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "report",
    "text.parse_math": False,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": RULE,
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
}

Draw = Callable[[Axes, dict[str, str]], None]


@matplotlib.rc_context(STYLE)
def chart(title: str, draw: Draw, size: tuple[float, float] = SIZE) -> str:
    """What `draw` draws on the axes as SVG; it may name an artist's `gid` and give it a tooltip."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.set_title(title)
    tooltips: dict[str, str] = {}
    draw(axes, tooltips)
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return _for_page(text.getvalue(), title, tooltips)


def _for_page(svg: str, title: str, tooltips: dict[str, str]) -> str:
    svg = svg[svg.index("<svg") :]
    prefix = re.sub(r"\W+", "-", title)
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    for gid, tooltip in tooltips.items():
        svg = svg.replace(f'<g id="{prefix}-{gid}">', f"<g><title>{escape(tooltip)}</title>")
    for number, colour in enumerate(PALETTE):
        svg = svg.replace(colour, f"var(--c{number})")
    svg = svg.replace(INK, "currentColor").replace(RULE, "var(--rule)")
    svg = re.sub(r"font: (\d+)px [^;\"]*", r"font: \1px var(--font)", svg)
    frame = re.search(r'viewBox="[^"]+"', svg)
    assert frame is not None
    return f'<svg {frame[0]} role="img" aria-label="{escape(title)}">{svg[svg.index(">") + 1 :]}'


def stretch(axes: Axes, which: Literal["x", "y"], values: Iterable[float]) -> None:
    """Makes an axis logarithmic where its values are positive and far apart; its numbers stay plain."""
    if is_wide(values):
        make_logarithmic(axes, which)


def make_logarithmic(axes: Axes, which: Literal["x", "y"]) -> None:
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def is_wide(values: Iterable[float]) -> bool:
    """Whether all values are positive, and the largest one is more than 200 times the smallest."""
    finite = [value for value in values if math.isfinite(value)]
    return bool(finite) and min(finite) > 0 and max(finite) / min(finite) > 200


def curves(
    title: str,
    configurations: Sequence[Configuration],
    columns: Sequence[str],
    is_share: bool = False,
    may_leave: bool = True,
) -> str | None:
    """Columns of the histories over epochs: the mean over the runs of a configuration, a band from least to most.

    The first column is drawn solid, the second one dashed. None where no run has any of them.
    With `may_leave` the grey ones may leave the picture: one that diverged would flatten the others.
    """
    drawn = [
        (place, style, line)
        for place, configuration in enumerate(configurations)
        for column, style in zip(columns, ("-", "--"), strict=False)
        if (line := _over_epochs(configuration.runs, column)) is not None
    ]
    if not drawn:
        return None

    def draw(axes: Axes, tooltips: dict[str, str]) -> None:
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        coloured = [values for place, _, (_, values) in drawn if not may_leave or place < len(PALETTE) - 1]
        stretch(axes, "y", np.concatenate([*map(np.ravel, coloured), []]))
        for place, style, (epochs, values) in drawn:
            if may_leave and place == len(PALETTE) - 1:
                axes.autoscale_view()
                axes.autoscale(False, axis="y")
            colour = PALETTE[min(place, len(PALETTE) - 1)]
            marker = "o" if len(epochs) == 1 else ""
            gid, layer = f"c{place}{style}", 3 - place / 100
            look = {"color": colour, "linestyle": style, "marker": marker, "markersize": 4, "linewidth": 1.4}
            axes.plot(epochs, np.nanmean(values, axis=0), gid=gid, zorder=layer, **look)
            tooltips[gid] = configurations[place].title
            if len(values) > 1:
                least, most = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
                axes.fill_between(epochs, least, most, color=colour, alpha=0.2, linewidth=0, zorder=layer)
        if is_share:
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(PercentFormatter(1))

    return chart(title, draw)


def _over_epochs(runs: list[Run], column: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Epochs `[E]` and finite values `[runs, E]` of a column, NaN where a run has none."""
    found = [
        {
            epoch: value
            for epoch, value in zip(run.history["epoch"], run.history[column], strict=True)
            if math.isfinite(value)
        }
        for run in runs
        if column in run.history
    ]
    epochs = sorted({epoch for values in found for epoch in values})
    rows = [[values.get(epoch, math.nan) for epoch in epochs] for values in found if values]
    return (np.array(epochs), np.array(rows)) if rows else None
