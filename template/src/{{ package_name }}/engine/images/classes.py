"""Which classes a folder or a table of images has. Imports no torch: the config asks before a command begins."""

import csv
import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import UserError

ENDINGS = set(
    [".avif", ".bmp", ".gif", ".jp2", ".jpeg", ".jpg", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp"]
)
SPLITS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
NEEDED = ("path", "label")
KNOWN = (*NEEDED, "split", "group")

Table = dict[str, list[str]]


def is_url(root: str) -> bool:
    """Whether fsspec is to open it; anything else is a folder of this machine."""
    return "://" in root or "::" in root


def count_classes(root: str, index: str | None) -> int:
    """How many classes there are; the default of `data.num_classes`."""
    if index is not None:
        return len(class_names(read_table(root, index)["label"]))
    return len({name for names in class_folders(root).values() for name in names})


def class_names(labels: Iterable[str]) -> list[str]:
    """Each label once, in the order of the alphabet, or of the numbers where all are whole numbers."""
    names = set(labels)
    return sorted(names, key=int) if all(name.isascii() and name.isdigit() for name in names) else sorted(names)


def class_folders(root: str) -> dict[str, list[str]]:
    """The folders of classes by split; the split is empty where the root holds the classes themselves.

    Raises:
        UserError: the root is no folder, or holds none.
    """
    folders = _folders(root, "")
    if not folders:
        raise UserError(
            f"data.root={root} holds no folders: it takes one for each class, or data.index names a table of images"
        )
    if {"train"} <= {SPLITS.get(name.lower()) for name in folders} <= {"train", "val", "test"}:
        return {name: _folders(root, name) for name in folders}
    return {"": folders}


def _folders(root: str, below: str) -> list[str]:
    """Names of the folders in one, without hidden ones."""
    try:
        if is_url(root):
            from .files import open_root

            file_system, top = open_root(root)
            found = file_system.ls(f"{top}/{below}".rstrip("/"), detail=True)
            names = [PurePosixPath(entry["name"]).name for entry in found if entry["type"] == "directory"]
        else:
            with os.scandir(Path(root, below)) as entries:
                names = [entry.name for entry in entries if entry.is_dir()]
    except (OSError, ValueError, ImportError) as error:
        raise unreadable("data.root", root, error) from error
    return sorted(name for name in names if not is_hidden(name))


def is_hidden(name: str) -> bool:
    """Whether it is a file or folder that systems leave behind."""
    return name.startswith((".", "__MACOSX"))


def read_table(root: str, index: str) -> Table:
    """Columns `path`, `label` and, where there are, `split` and `group` of a CSV or Parquet file, as texts.

    Args:
        root: The folder of the images.
        index: The file, by itself or below `root`.

    Raises:
        UserError: it cannot be read, a column is missing, or a path or label is empty.
    """
    file = index if is_url(index) or Path(index).is_file() else f"{root.rstrip('/')}/{index}"
    try:
        table = _read_parquet(file) if file.lower().endswith(".parquet") else _read_csv(file)
    except (OSError, ValueError, ImportError, csv.Error) as error:
        raise unreadable("data.index", index, error) from error
    if missing := [column for column in NEEDED if column not in table]:
        raise UserError(
            f"data.index={index} has no column {missing[0]}: it needs path and label, and may have split and group "
            f"(got {', '.join(table) or 'nothing'})"
        )
    for column in (*NEEDED, *({"group"} & set(table))):
        if "" in table[column]:
            row = table[column].index("") + 1
            raise UserError(f"data.index={index} has no {column} in row {row}: fill it in, or leave the row out")
    if not table["path"]:
        raise UserError(f"data.index={index} holds no rows")
    return {column: table[column] for column in KNOWN if column in table}


def _read_csv(file: str) -> Table:
    import fsspec

    with fsspec.open(file, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        rows = csv.reader(stream)
        head: list[str] = next(rows, [])
        columns: list[list[str]] = [[] for _ in head]
        for row in rows:
            if row and len(row) != len(head):
                raise ValueError(f"line {rows.line_num} has {len(row)} cells, the first {len(head)}")
            for column, cell in zip(columns, row, strict=False):
                column.append(cell.strip())
    return {name.strip().lower(): column for name, column in zip(head, columns, strict=True)}


def _read_parquet(file: str) -> Table:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise UserError("data.index is a Parquet file: type pip install pyarrow, or write it as CSV") from error
    import fsspec

    with fsspec.open(file, "rb") as stream:
        columns: dict[str, list[Any]] = parquet.read_table(stream).to_pydict()
    return {
        name.lower(): ["" if cell is None or cell != cell else str(cell) for cell in column]
        for name, column in columns.items()
    }


def unreadable(key: str, value: str, error: Exception) -> UserError:
    """What a system or a library says of a file that it cannot read, as a user's mistake."""
    reason = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
    return UserError(f"{key}={value} cannot be read: {reason}")
