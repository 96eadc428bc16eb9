"""The table of configurations: what differs between them, and what their runs reached."""

import csv
import io
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from .experiments import Run, differing_keys, settings, telling_keys, texts

MOST_ROWS = 50
WIDEST_CELL = 40  # characters, on the console


class Spread(NamedTuple):
    """Mean and sample standard deviation (n - 1) of n values; NaN where there are too few."""

    mean: float
    std: float
    n: int

    def __str__(self) -> str:
        if not self.n:
            return ""
        return f"{self.mean:.4g}" + (f" ± {self.std:.2g}" if self.n > 1 else "")


def spread(values: Iterable[float]) -> Spread:
    """Of the finite values."""
    finite = [value for value in values if math.isfinite(value)]
    mean = statistics.fmean(finite) if finite else math.nan
    return Spread(mean, statistics.stdev(finite) if len(finite) > 1 else math.nan, len(finite))


@dataclass
class Configuration:
    """Runs that differ in nothing but seed or fold."""

    settings: dict[str, str]
    runs: list[Run]

    @property
    def title(self) -> str:
        settings = [f"{key}={value}" for key, value in self.settings.items() if value]
        return ", ".join(settings) or f"{len(self.runs)} × {self.runs[0].record.get('name', 'run')}"

    def spread(self, measure: Callable[[Run], float]) -> Spread:
        """Over the finished runs, or all where none is; those of the same seed and fold count as their mean."""
        repetitions: dict[Any, list[float]] = {}
        finished = [run for run in self.runs if run.status == "finished"]
        for run in finished or self.runs:
            own = run.repetition if run.seed is not None else run.directory
            repetitions.setdefault(own, []).append(measure(run))
        return spread(spread(values).mean for values in repetitions.values())

    @property
    def badness(self) -> float:
        """What the configurations are sorted by, the best one first."""
        mean = self.spread(lambda run: run.sign * run.best).mean
        return mean if math.isfinite(mean) else math.inf


class Table:
    """The configurations of some runs, the best one first; those that are judged by another metric stand apart.

    Attributes:
        names: What differs between them.
        tests: The metrics that were tested.
    """

    def __init__(self, runs: list[Run]) -> None:
        keys, telling = differing_keys(runs), telling_keys(runs)
        self.tests = list(dict.fromkeys(name for run in runs for name in run.test))
        metrics = list(dict.fromkeys(run.judged_by for run in runs))
        self.metric = runs[0].metric if len(metrics) == 1 else "metric"
        groups: dict[tuple[str | None, ...], list[Run]] = {}
        for run in runs:
            values = texts(run)
            lonely = None if run.config else str(run.directory)  # nobody knows what it is a repetition of
            groups.setdefault((run.judged_by, lonely, *(values.get(key) for key in keys)), []).append(run)
        found = [
            Configuration(
                ({"judged by": group[0].judged_by} if len(metrics) > 1 else {}) | settings(group[0], telling), group
            )
            for group in groups.values()
        ]
        self.names = list(found[0].settings)
        self.configurations = sorted(found, key=lambda own: (metrics.index(own.runs[0].judged_by), own.badness))

    def titles(self) -> list[str]:
        return [*self.names, "runs", "status", f"best {self.metric}", f"last {self.metric}", *self.tests, "time"]

    def rows(self) -> list[list[str]]:
        """A row for each of the best 50 configurations, with mean ± standard deviation where it has several runs."""
        return [
            [
                *configuration.settings.values(),
                str(len(configuration.runs)),
                statuses(configuration.runs),
                *(str(configuration.spread(measure)) for measure in self.measures().values()),
                duration(configuration.spread(attrgetter("seconds")).mean),
            ]
            for configuration in self.configurations[:MOST_ROWS]
        ]

    def left_out(self) -> str:
        """What to say below the rows where not all configurations have one."""
        more = len(self.configurations) - MOST_ROWS
        return f"{more} more in report.csv" if more > 0 else ""

    def measures(self) -> dict[str, Callable[[Run], float]]:
        """What is measured of each run: its best and its last score, and its tests."""
        tests = {name: partial(_tested, name) for name in self.tests}
        return {"best": attrgetter("best"), "last": attrgetter("last"), **tests}

    def csv(self) -> str:
        """A row for each run, with mean, standard deviation and number of the runs of its configuration."""
        text = io.StringIO()
        measures = self.measures()
        facts = ["configuration", "run", "status", "seconds", "epochs", "seed", "fold", "metric"]
        spreads = [f"{name} {part}" for name in measures for part in Spread._fields]
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*facts, *self.names, *measures, *spreads])
        for number, configuration in enumerate(self.configurations, 1):
            grouped = [part for measure in measures.values() for part in configuration.spread(measure)]
            for run in configuration.runs:
                epochs, fold = run.record.get("epochs", ""), run.config.get("data.fold", "")
                row = [number, run.directory, run.status, run.seconds, epochs, run.seed, fold, run.metric]
                scores = [measure(run) for measure in measures.values()]
                writer.writerow(map(_cell, [*row, *configuration.settings.values(), *scores, *grouped]))
        return text.getvalue()

    def console(self) -> str:
        """The rows in columns of text; long cells are cut."""
        rows = [[_cut(cell) for cell in row] for row in (self.titles(), *self.rows())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, self.left_out()]).rstrip() + "\n"


def _cut(cell: str) -> str:
    return cell if len(cell) <= WIDEST_CELL else f"{cell[: WIDEST_CELL - 1]}…"


def _tested(name: str, run: Run) -> float:
    return run.test.get(name, math.nan)


def _cell(value: Any) -> Any:
    return "" if value is None or value != value else str(value) if isinstance(value, Path) else value


def statuses(runs: list[Run]) -> str:
    counts = Counter(run.status for run in runs)
    return ", ".join(f"{count} {status}" if len(counts) > 1 else status for status, count in counts.most_common())


def number(value: float) -> str:
    """Four digits of a finite value, nothing for another one."""
    return f"{value:.4g}" if math.isfinite(value) else ""


def duration(seconds: float) -> str:
    if not math.isfinite(seconds):
        return ""
    minutes = round(seconds / 60)
    return f"{seconds:.3g} s" if seconds < 100 else f"{minutes} min" if minutes < 100 else f"{minutes / 60:.1f} h"
