"""`metrics.csv`, the history of a run: written a row at a time, and read without torch."""

import csv
from pathlib import Path
from typing import Any

NAME = "metrics.csv"


class HistoryFile:
    """Writes the rows of a run.

    Args:
        directory: The run directory.
        epochs: How many epochs of an earlier part of the run are kept; later rows are dropped with the first new one.
    """

    def __init__(self, directory: Path, epochs: int) -> None:
        self.file = directory / NAME
        self.epochs = epochs
        self.columns: list[str] = []

    def add(self, row: dict[str, Any]) -> None:
        """Appends a row; before the first one, and where a row has new columns, the file is written anew."""
        if row.keys() <= set(self.columns):
            with self.file.open("a", newline="", encoding="utf-8") as file:
                csv.DictWriter(file, self.columns, lineterminator="\n").writerow(row)
        else:
            kept = [old for old in read(self.file) if int(old["epoch"]) <= self.epochs]
            self.columns = list(dict.fromkeys([*(kept[0] if kept else ()), *row]))
            beside = self.file.with_name(f".{NAME}")
            with beside.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, self.columns, lineterminator="\n")
                writer.writeheader()
                writer.writerows([*kept, row])
            beside.replace(self.file)
        self.epochs = row["epoch"]


def read(file: Path) -> list[dict[str, str]]:
    """The whole rows; the last one may be half-written where a run was killed."""
    if not file.exists():
        return []
    whole = file.read_text(encoding="utf-8", errors="replace").rpartition("\n")[0]
    lines: list[list[str]] = list(csv.reader(whole.splitlines()))
    header, rows = lines[0] if lines else [], lines[1:]
    complete = [dict(zip(header, row, strict=True)) for row in rows if len(row) == len(header)]
    return [row for row in complete if row.get("epoch", "").isdigit()]
