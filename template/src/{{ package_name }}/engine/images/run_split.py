"""The split of a run: which images it trains, validates and tests on, kept in two files of the run directory."""

import csv
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..errors import UserError
from ..splits import Split
from .index import ImageIndex

TABLE, FACTS = "split.csv", "split.json"
PARTS = Split._fields


class RunSplit(NamedTuple):
    """Images and the part that each belongs to.

    Attributes:
        paths: Relative to the root.
        labels: Numbers of the classes, `[N]` int64.
        class_names: In the order of the numbers.
        places: Where the images of each part stand.
        bad: Paths of images that were left out because they cannot be read, with the reasons.
    """

    paths: list[str]
    labels: Tensor
    class_names: list[str]
    places: Split
    bad: list[str]

    @classmethod
    def of(cls, index: ImageIndex, places: Split, bad: list[str]) -> "RunSplit":
        return cls(index.paths, index.labels, index.class_names, places, bad)

    def write(self, directory: Path, settings: dict[str, Any]) -> None:
        """Writes what `read` gives back; the table comes last, and whole."""
        parts = [""] * len(self.paths)
        for part, places in self.places._asdict().items():
            for place in places.tolist():
                parts[place] = part
        counts = {part: len(places) for part, places in self.places._asdict().items()}
        facts = {"settings": settings, "images": counts, "classes": self.class_names, "unreadable": self.bad}
        text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
        _replace(directory / FACTS, [text])
        names = (self.class_names[label] for label in self.labels.tolist())
        rows = [row for row in zip(self.paths, names, parts, strict=True) if row[2]]
        _replace(directory / TABLE, [("path", "label", "split"), *rows])

    @classmethod
    def read(cls, directory: Path, settings: dict[str, Any]) -> "RunSplit | None":
        """The split that a run was begun with; None where it keeps none.

        Raises:
            UserError: it was made with other settings, or the files are damaged.
        """
        if not (directory / TABLE).exists():
            return None
        try:
            facts = json.loads((directory / FACTS).read_text("utf-8", "surrogateescape"))
            with (directory / TABLE).open(encoding="utf-8", errors="surrogateescape", newline="") as file:
                paths, names, parts = zip(*list(csv.reader(file))[1:], strict=True)
            number = {name: place for place, name in enumerate(facts["classes"])}
            labels = torch.tensor([number[name] for name in names])
            before, bad = facts["settings"], list(facts["unreadable"])
        except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
            raise UserError(f"{directory / TABLE} or {FACTS} is damaged: mend it, or begin a new run") from error
        for key, value in settings.items():
            if before.get(key) != value:
                raise UserError(
                    f"data.{key} is {value}, but the split of {directory} was made with {before.get(key)}: "
                    "leave it as it was, or begin a new run"
                )
        places = Split(*(torch.tensor([i for i, its in enumerate(parts) if its == part]) for part in PARTS))
        return cls(list(paths), labels, list(facts["classes"]), places, bad)

    def counts(self) -> str:
        """The number of images of each part, and of those that cannot be read, in words."""
        parts = ", ".join(f"{len(places):,} {part}" for part, places in self.places._asdict().items())
        return f"{parts}{f', {len(self.bad)} left out as unreadable' if self.bad else ''}"


def _replace(file: Path, rows: list[Any]) -> None:
    """Writes beside the file and renames: a reader never sees half of it."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    with beside.open("w", encoding="utf-8", errors="surrogateescape", newline="") as stream:
        if isinstance(rows[0], str):
            stream.writelines(rows)
        else:
            csv.writer(stream, lineterminator="\n").writerows(rows)
    beside.replace(file)
