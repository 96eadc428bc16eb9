"""The report's page: one file without scripts and without anything from elsewhere."""

import base64
import io
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.image import imsave

from .charts import PALETTE, curves
from .experiments import Run, sweeps
from .learning_rate import range_test
from .prediction_file import read_predictions
from .sweep_charts import range_chart, sweep_charts
from .table import Table, duration, number

MOST_CURVES = 20
MOST_SWEEPS = 10
MOST_CLASSES = 20  # larger confusion matrices become a list of the most frequent mistakes
FACTS = ("python", "versions", "git", "device", "devices", "precision", "world_size", "process.host")


def page(title: str, runs: list[Run], table: Table) -> str:
    """The whole page as HTML."""
    now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{len(runs)} run{'s' * (len(runs) > 1)}, {len(table.configurations)} "
        f"configuration{'s' * (len(table.configurations) > 1)}; made on {now}</p>",
        _configurations(table),
        _curves(table),
        _sweeps(runs),
        _predictions(table),
        _failures(runs),
        _runs(table),
        _environment(runs),
    ]
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style></head>\n<body>\n{''.join(parts)}</body></html>\n"
    )


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table of cells that are HTML already."""
    head = "".join(f"<th>{title}</th>" for title in titles)
    body = "\n".join(
        f"<tr>{''.join(cell if cell.startswith('<t') else f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows
    )
    table = f'<table class="{kind}"><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>'
    return f'<div class="scroll">{table}</div>\n'


def _swatch(place: int) -> str:
    return f'<span class="swatch" style="background:var(--c{min(place, len(PALETTE) - 1)})"></span>'


def _configurations(table: Table) -> str:
    rows = [[_swatch(place), *map(escape, row)] for place, row in enumerate(table.rows())]
    return (
        "<h2>Configurations</h2><p>The best one first. ± is the sample standard deviation over finished runs that "
        "differ only in seed or fold. Colours are those of the charts.</p>"
        + _table(["", *map(escape, table.titles())], rows)
        + f"<p>{table.left_out()}</p>"
    )


def _grid(charts: Iterable[str | None]) -> str:
    return '<div class="charts">' + "".join(f"<figure>{chart}</figure>\n" for chart in charts if chart) + "</div>\n"


def _curves(table: Table) -> str:
    best = table.configurations[:MOST_CURVES]
    left_out = len(table.configurations) - len(best)
    metric = [] if table.metric.endswith("/loss") else [curves(table.metric, best, [table.metric])]
    charts = [
        curves("Loss (solid: validation, dashed: training)", best, ["val/loss", "train/loss"]),
        *metric,
        curves("Learning rate at the start of the epoch", best, ["lr"], may_leave=False),
        curves("Gradient norm, mean of the epoch", best, ["grad_norm"]),
        curves("Share of time waiting for data", best, ["data_wait"], is_share=True),
    ]
    note = f" Only the best {len(best)} configurations are drawn, {left_out} are not." if left_out else ""
    return (
        "<h2>Learning curves</h2><p>Means over the runs of a configuration that reached the epoch; bands reach from "
        f"the least to the largest value.{note}</p>" + _grid(charts)
    )


def _sweeps(runs: list[Run]) -> str:
    found = sweeps(runs)
    drawn = [_sweep(folder, trials) for folder, trials in list(found.items())[-MOST_SWEEPS:] if len(trials) > 1]
    more = len(found) - MOST_SWEEPS
    note = f"<p>{more} earlier sweeps are not drawn here; a report of their folder shows them.</p>" if more > 0 else ""
    return "".join(drawn) + note


def _sweep(folder: Path, trials: list[Run]) -> str:
    charts, importance = sweep_charts(trials)
    test = range_test(trials)
    words = f"<p>{escape(test.words)}</p>" if test else ""
    rows = [
        [escape(key), f"{share:.0%}", f'<span class="bar" style="width:{8 * share:.2f}rem"></span>']
        for key, share in importance
    ]
    shares = (
        "<h3>Importance of parameters</h3><p>Share of the variance of the trials' ranks that each parameter explains "
        "alone (ε², 0 where chance would explain as much). It knows nothing of parameters that matter only together."
        "</p>" + _table(["parameter", "share", ""], rows)
        if rows
        else ""
    )
    return f"<h2>Sweep {escape(str(folder))}</h2>{words}{_grid([range_chart(test) if test else None, *charts])}{shares}"


def _predictions(table: Table) -> str:
    """Of the best run, among those that are judged as the first configuration of the table is."""
    runs = [run for configuration in table.configurations for run in configuration.runs if math.isfinite(run.best)]
    alike = [run for run in runs if run.judged_by == runs[0].judged_by]
    for run in sorted(alike, key=lambda run: run.sign * run.best):
        if (found := read_predictions(run.directory)) is not None:
            name = escape(str(run.directory))
            return f"<h2>Test of the best run</h2><p>{name}</p>{_confusion(found['confusion'])}{_pictures(found)}"
    return ""


def _confusion(counts: Any) -> str:
    wrong = counts - np.diag(np.diag(counts))
    accuracy = f"{1 - wrong.sum() / max(1, counts.sum()):.2%} of {counts.sum()} samples are right."
    if len(counts) > MOST_CLASSES:
        order = [np.unravel_index(place, wrong.shape) for place in np.argsort(-wrong, axis=None)[:MOST_CLASSES]]
        rows = [
            [str(true), str(predicted), str(wrong[true, predicted])]
            for true, predicted in order
            if wrong[true, predicted]
        ]
        return f"<h3>Most frequent mistakes</h3><p>{accuracy}</p>{_table(['true class', 'predicted', 'samples'], rows)}"
    rows = []
    for true, line in enumerate(counts):
        cells = []
        for predicted, count in enumerate(line):
            colour, share = ("--c0" if true == predicted else "--c1"), 60 * count / max(1, line.sum())
            background = f"color-mix(in srgb, var({colour}) {share:.0f}%, transparent)"
            cells.append(f'<td style="background:{background}">{count or ""}</td>')
        rows.append([f"<th>{true}</th>", *cells])
    titles = ["", *map(str, range(len(counts)))]
    words = f"{accuracy} A row for each true class, a column for each predicted one."
    return f"<h3>Confusion matrix</h3><p>{words}</p>{_table(titles, rows, 'matrix')}"


def _pictures(found: dict[str, Any]) -> str:
    if not len(found.get("images", ())):
        return ""
    figures = []
    for image, true, predicted, confidence in zip(
        *(found[name] for name in ("images", "true", "predicted", "confidence")), strict=True
    ):
        png = io.BytesIO()
        imsave(png, np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image, format="png")
        source = base64.b64encode(png.getvalue()).decode()
        words = f"is {true}, predicted {predicted} ({confidence:.0%})"
        figures.append(
            f'<figure><img src="data:image/png;base64,{source}" alt="{words}"><figcaption>{words}</figcaption></figure>'
        )
    return f'<h3>Most wrong samples</h3><div class="pictures">{"".join(figures)}</div>'


def _failures(runs: list[Run]) -> str:
    rows = [
        [
            escape(str(run.directory)),
            escape(run.status),
            duration(run.seconds),
            f'<td class="wide">{escape(str(run.record.get("error", run.record.get("signal", ""))))}</td>',
        ]
        for run in runs
        if run.status not in ("finished", "running", "claimed") and not run.status.startswith("running on")
    ]
    return f"<h2>Runs that did not finish</h2>{_table(['run', 'status', 'time', 'reason'], rows)}" if rows else ""


def _runs(table: Table) -> str:
    rows = [
        [
            _swatch(place),
            escape(str(run.directory)),
            escape(run.status),
            "" if run.seed is None else escape(str(run.seed)),
            number(run.best),
            number(run.last),
        ]
        for place, configuration in enumerate(table.configurations)
        for run in configuration.runs
    ]
    listed = _table(["", "run", "status", "seed", f"best {escape(table.metric)}", "last"], rows)
    few = " open" if len(rows) <= MOST_CURVES else ""
    return f"<h2>Runs</h2><details{few}><summary>In the order of the configurations</summary>{listed}</details>"


def _environment(runs: list[Run]) -> str:
    values: dict[str, Counter[str]] = {}
    for run in runs:
        for fact in FACTS:
            value: Any = run.record
            for part in fact.split("."):
                value = value.get(part) if isinstance(value, dict) else None
            entries = value.items() if isinstance(value, dict) else [("", value)]
            for name, entry in entries:
                if entry is not None:
                    values.setdefault(f"{fact} {name}".strip(), Counter())[str(entry)] += 1
    rows = [
        [
            escape(fact),
            '<td class="wide">'
            + ", ".join(
                escape(value) + (f" ({count} runs)" if len(found) > 1 else "") for value, count in found.items()
            )
            + "</td>",
        ]
        for fact, found in values.items()
    ]
    return f"<h2>Environment</h2>{_table(['', 'value'], rows)}" if rows else ""
