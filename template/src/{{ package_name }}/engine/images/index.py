"""The images of a folder or of a table: where each lies, what it shows, which split and group it is of."""

import logging
import os
from collections import Counter
from pathlib import PurePosixPath
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import UserError
from .classes import ENDINGS, SPLITS, class_folders, class_names, is_hidden, is_url, read_table, unreadable
from .files import open_root

log = logging.getLogger(__name__)


class ImageIndex(NamedTuple):
    """Images in the order of their paths.

    Attributes:
        root: A folder, or any URL that fsspec opens.
        paths: Relative to `root`, with `/`.
        labels: Numbers of the classes, `[N]` int64.
        class_names: Names of the classes, in the order of their numbers.
        splits: `train`, `val`, `test` or nothing for each image; None where nobody states any.
        groups: What images of one group have in common; None where nobody states any.
    """

    root: str
    paths: list[str]
    labels: Tensor
    class_names: list[str]
    splits: list[str] | None
    groups: list[str] | None


def find_images(root: str, index: str | None = None) -> ImageIndex:
    """The images of class folders (`root/CLASS/…`, or `root/train/CLASS/…` and so on), or those of a table.

    Raises:
        UserError: there are none, one is there twice, or labels differ between splits.
    """
    paths, names, splits, groups = _in_folders(root) if index is None else _in_table(root, index)
    where = f"data.root={root}" if index is None else f"data.index={index}"
    if twice := [path for path, count in Counter(paths).items() if count > 1]:
        raise UserError(f"{where} names {twice[0]} more than once: leave it one row ({len(twice)} such images)")
    if splits is not None:
        _refuse_unequal_labels(where, names, splits)
    classes = class_names(names)
    number = {name: place for place, name in enumerate(classes)}
    order = sorted(range(len(paths)), key=paths.__getitem__)
    return ImageIndex(
        root,
        [paths[place] for place in order],
        torch.tensor([number[names[place]] for place in order]),
        classes,
        None if splits is None else [splits[place] for place in order],
        None if groups is None else [groups[place] for place in order],
    )


_Columns = tuple[list[str], list[str], list[str] | None, list[str] | None]  # paths, labels, splits, groups


def _in_folders(root: str) -> _Columns:
    paths: list[str] = []
    labels: list[str] = []
    splits: list[str] = []
    others: Counter[str] = Counter()
    folders = class_folders(root)
    for split, names in folders.items():
        for name in names:
            before = len(paths)
            for path in _files(root, f"{split}/{name}" if split else name):
                ending = PurePosixPath(path).suffix.lower()
                if ending in ENDINGS:
                    paths.append(path)
                else:
                    others[ending or "none"] += 1
            if len(paths) == before:
                raise UserError(
                    f"data.root={root}: the class {split and f'{split}/'}{name} has no images (endings: "
                    f"{' '.join(sorted(ENDINGS))}): add some, or remove the folder"
                )
            labels += [name] * (len(paths) - before)
            splits += [SPLITS.get(split.lower(), "")] * (len(paths) - before)
    if others:
        log.info("images     passed over %d other files (endings: %s)", others.total(), " ".join(sorted(others)))
    return paths, labels, None if "" in folders else splits, None


def _files(root: str, folder: str) -> list[str]:
    """Paths of all files below a folder, relative to `root`; links are followed."""
    try:
        if is_url(root):
            file_system, top = open_root(root)
            start = f"{top}/" if top else ""
            found = [path.removeprefix(start) for path in file_system.find(f"{start}{folder}")]
            return [path for path in found if not any(map(is_hidden, path.split("/")))]
        found: list[str] = []
        for place, folders, files in os.walk(os.path.join(root, folder), onerror=_raise, followlinks=True):
            folders[:] = [name for name in folders if not is_hidden(name)]
            below = os.path.relpath(place, root).replace(os.sep, "/")
            found += [f"{below}/{name}" for name in files if not is_hidden(name)]
        return found
    except OSError as error:
        raise unreadable("data.root", root, error) from error


def _raise(error: OSError) -> None:
    raise error


def _in_table(root: str, index: str) -> _Columns:
    table = read_table(root, index)
    splits = table.get("split")
    if splits is not None:
        if unknown := next((split for split in splits if split and split.lower() not in SPLITS), None):
            raise UserError(f"data.index={index}: a split is train, val or test (got {unknown!r})")
        splits = [SPLITS.get(split.lower(), "") for split in splits]
        if not any(splits):
            splits = None
        elif "" in splits:
            row = splits.index("") + 1
            raise UserError(f"data.index={index} has no split in row {row}: fill it in, or leave the column out")
    paths = [os.path.normpath(path).replace(os.sep, "/") for path in table["path"]]
    if outside := next((path for path in paths if path.startswith(("/", "../"))), None):
        raise UserError(f"data.index={index}: paths are relative to data.root, and below it (got {outside})")
    return paths, table["label"], splits, table.get("group")


def _refuse_unequal_labels(where: str, names: list[str], splits: list[str]) -> None:
    found = {split: {name for name, its in zip(names, splits, strict=True) if its == split} for split in set(splits)}
    if "train" not in found:
        raise UserError(f"{where} has no training images: its splits are {', '.join(sorted(found))}")
    for split, labels in sorted(found.items()):
        for name in sorted(labels ^ found["train"]):
            there, missing = (split, "train") if name in labels else ("train", split)
            raise UserError(
                f"{where}: the class {name} is in {there} and not in {missing}, and every split needs the same ones: "
                f"add images to {missing}, or take the class out of {there}"
            )
