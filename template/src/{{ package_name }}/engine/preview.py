"""A look at the data as the network would get it, without training: pictures, label counts, statistics, warnings."""

import copy
import logging
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import lightning.pytorch as lightning
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.utilities.seed import isolate_rng
from matplotlib.figure import Figure
from torch import Tensor

from . import batch_size, logs, strategy
from .build import build
from .class_weights import balanced_weights
from .config import Config
from .data_module import DataModule
from .data_warnings import Name, is_unbalanced, warnings_about
from .devices import choose
from .errors import UserError
from .first_batch import describe
from .path_options import short
from .sample_pictures import is_drawable, label_bars, sample_grid
from .split_facts import SplitFacts, drawn, inputs_and_labels, label_table, read_split, size_of, value_table

STAGES = {"train": "training", "val": "validating", "test": "testing"}  # Lightning's names
LONG = {"train": "training", "val": "validation", "test": "test"}
COLUMNS = 8
ROWS = 6  # of augmented.png

log = logging.getLogger(__name__)


def preview(config: Config) -> None:
    """Writes `batch.png`, `augmented.png` and `labels.png` into `output`, and prints what else there is to see.

    It leaves nothing else behind, and the global random state as it was.

    Raises:
        UserError: a key that cannot be, or data that no training could begin with.
    """
    logs.configure(directory=None)
    if config["split"] not in STAGES:
        raise UserError(f"split must be train, val or test (got {config['split']!r})")
    for key in ("samples", "limit"):
        if type(config[key]) is not int or config[key] < 1:
            raise UserError(f"{key} must be a whole number from 1 (got {config[key]!r})")
    if not config["output"]:
        raise UserError(f"output must name a folder (got {config['output']!r})")
    with isolate_rng(), torch.no_grad():
        _look(config, config["split"])


def _look(config: Config, shown: str) -> None:
    data = _data_module(config)
    loaders = dict(_loaders(data, wants_test=config["test"] or shown == "test"))
    lightning.seed_everything(config["seeding"]["seed"], verbose=False)  # as before the first batch of a training
    batch = next(iter(loaders.get(shown, ())), None)
    for split, found in ((shown, batch), ("train", loaders.get("train"))):
        if found is None:
            who = type(data).__name__
            raise UserError(f"{who} has no {split} batch: look at its {split}_dataloader and {split}_set")
    batch = _transfer(data, STAGES[shown], batch)
    log.info("data       %s\nbatch      %s\n", type(data).__name__, describe(batch))
    seen = partial(_transfer, data, STAGES["val"])
    splits = [read_split(split, loader, seen, data.batch_size, config["limit"]) for split, loader in loaders.items()]
    num_classes = config["data"].get("num_classes", config["model"].get("num_classes"))
    labels = sorted({label for split in splits for label in split.labels})
    if labels:
        labels = sorted({*labels, *range(num_classes or 0)})
    name = partial(_name, data.class_names if isinstance(data.class_names, Sequence) else ())

    log.info("%s\n\n%s\n", label_table(splits, labels, name), value_table(splits, data))
    for split in splits:
        if split.read >= config["limit"] and split.read != split.size:
            log.info("limit      %s: %s samples of %s were read", split.name, split.read, split.size or "more")
        if split.read and not split.labels:
            log.info("labels     %s: not a whole number for each sample, so they are not counted", split.name)
    pictures: dict[str, Figure | None] = {"labels": label_bars(splits, labels, name) if labels else None}
    if is_drawable(inputs := inputs_and_labels(batch)[0]):
        title = f"the first {LONG[shown]} batch, as the network gets it"
        pictures["batch"] = sample_grid(*_cells(batch, config["samples"], name), COLUMNS, title)
        pictures["augmented"] = _augmented(data, loaders["train"], name)
    else:
        pictures |= {"batch": None, "augmented": None}
        log.info("inputs     %s cannot be drawn: pictures are [batch, 1 or 3, height, width]", describe(inputs))
    _write(Path(config["output"]), pictures)
    is_weighted = bool(config["model"].get("class_weights")) or data.sampler != "uniform"
    for warning in warnings_about(splits, num_classes, name, is_weighted):
        log.warning("warning    %s", warning)
    if "class_weights" in config["model"] and not is_weighted and (weights := _weights(splits[0], num_classes)):
        log.info("balanced   %s", shlex.quote(f"model.class_weights={weights}".replace(" ", "")))


def _data_module(config: Config) -> DataModule:
    """The data module as a training on one device has it, but without worker processes."""
    devices = choose(config["trainer"]["accelerator"], 1)
    lightning.seed_everything(config["seeding"]["seed"], verbose=False)
    data: DataModule = build(batch_size.apply(config, 1)[0]["data"], "data")
    data.num_workers = 0
    data.trainer = Trainer(
        accelerator=devices.kind,
        devices=1,
        accumulate_grad_batches=config["trainer"].get("accumulate_grad_batches", 1),
        plugins=[strategy.environment(devices)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data.prepare_data()
    return data


def _loaders(data: DataModule, wants_test: bool) -> Iterator[tuple[str, Any]]:
    """The loader of each split that there is, set up in the order of a training; the first one of several."""
    for split, stage in (("train", "fit"), ("val", None), ("test", "test"))[: 3 if wants_test else 2]:
        if stage is not None:
            data.setup(stage)
        hook = f"{split}_dataloader"
        if getattr(type(data), hook) is getattr(DataModule, hook) and not hasattr(data, f"{split}_set"):
            continue
        loader = getattr(data, hook)()
        while isinstance(loader, (list, tuple, dict)) and loader:
            loader = next(iter(loader.values() if isinstance(loader, dict) else loader))
        yield split, loader


def _transfer(data: DataModule, stage: str, batch: Any) -> Any:
    """Calls the hooks that Lightning calls with a batch before the network gets it."""
    trainer = data.trainer
    assert trainer is not None
    setattr(trainer, stage, True)
    batch = data.on_before_batch_transfer(batch, 0)
    batch = data.transfer_batch_to_device(batch, trainer.strategy.root_device, 0)
    return data.on_after_batch_transfer(batch, 0)


def _weights(train: SplitFacts, num_classes: int | None) -> list[float]:
    """Those with which the classes of an unbalanced training split count alike; none for a balanced one."""
    counts = [train.labels[label] for label in range(num_classes or 0)]
    return balanced_weights(counts) if is_unbalanced(counts) else []


def _name(class_names: Sequence[str], label: int) -> str:
    return class_names[label] if 0 <= label < len(class_names) else str(label)


def _cells(batch: Any, count: int, name: Name) -> tuple[list[Tensor], list[str]]:
    """The first images of a batch, and the words for them."""
    images, labels = inputs_and_labels(batch)
    shown = list(images[:count].cpu())
    return shown, [""] * len(shown) if labels is None else [name(label) for label in labels[:count].tolist()]


def _augmented(data: DataModule, loader: Any, name: Name) -> Figure | None:
    """Training samples, each in a row: as it is, then as the network may get it."""
    first = next(drawn(loader, ROWS, ROWS))
    columns = []
    for stage in (STAGES["val"], *[STAGES["train"]] * (COLUMNS - 1)):
        batch = copy.deepcopy(first) if size_of(loader) is None else next(drawn(loader, ROWS, ROWS))
        images, words = _cells(_transfer(data, stage, batch), ROWS, name)
        columns.append(list(zip(images, words, strict=True)))
    rows = list(zip(*columns, strict=False))
    if all(torch.equal(image, row[0][0]) for row in rows for image, _ in row):
        log.info("augmented  training samples come as they are: there is no augmentation to show")
        return None
    images, words = zip(*(cell for row in rows for cell in row), strict=True)
    return sample_grid(images, words, COLUMNS, "training samples as they are (left) and augmented")


def _write(folder: Path, pictures: dict[str, Figure | None]) -> None:
    """Writes the pictures there are, and removes those of an earlier look that there are not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in pictures.items():
            file = folder / f"{name}.png"
            if figure is None:
                file.unlink(missing_ok=True)
            else:
                figure.savefig(file, dpi=figure.dpi)
                log.info("picture    %s", short(file))
    except OSError as error:
        raise UserError(f"output={folder} cannot be written: {error.strerror}") from error
