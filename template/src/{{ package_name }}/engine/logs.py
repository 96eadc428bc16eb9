"""Where log lines go: facts to the console, everything to a file of the run."""

import logging
import os
import sys
import warnings
from pathlib import Path
from typing import TextIO

NOT_NEWS = (
    # decisions that the engine has made, or advice that it follows in its own way
    r".*does not have many workers.*",
    r".*Checkpoint directory .* exists and is not empty.*",
    r".*sync_dist=True.*",
    r".*Experiment logs directory .* exists and is not empty.*",
    r".*your dataloader is not resumable.*",
    r".*is smaller than the logging interval.*",
    r".*is not supported by the model summary.*",
    r".*Total length of .* across ranks is zero.*",  # refused by `engine.preflight`
    r".*'pin_memory' argument is set as true but no accelerator is found.*",
    r".*DataLoader will create \d+ worker processes in total.*",  # `engine.preflight` says it with the key
    r".*isinstance\(treespec, LeafSpec\).*",
)


FILE_ONLY = {"file_only": True}  # `extra` of a record that the console does not show


class _Console(logging.StreamHandler[TextIO]):
    """Writes to whatever `sys.stdout` is at the time: a progress bar puts its own stream there."""

    @property
    def stream(self) -> TextIO:
        return sys.stdout

    @stream.setter
    def stream(self, value: TextIO) -> None:
        pass


def file_name(rank: int) -> str:
    """The log of a rank, in the run directory."""
    return "train.log" if rank == 0 else f"rank-{rank}.log"


def redirect_output(file: Path) -> None:
    """Sends what this process and its libraries write to stdout and stderr to a file, from now on."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def configure(directory: Path | None, rank: int = 0) -> None:
    """Rank 0 speaks on the console, other ranks only warn; with a run directory, each rank keeps a log there."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    root.setLevel(logging.INFO)
    console = _Console()
    console.setFormatter(logging.Formatter("%(message)s"))
    console.addFilter(lambda record: not hasattr(record, "file_only"))
    console.setLevel(logging.INFO if rank == 0 else logging.WARNING)
    root.addHandler(console)
    if directory is not None:
        file = logging.FileHandler(directory / file_name(rank), delay=True)
        file.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
        root.addHandler(file)
    for name in ("lightning.pytorch", "lightning.fabric", "lightning"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.WARNING)  # its facts stand in the header
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").setLevel(logging.WARNING)
    for pattern in NOT_NEWS:
        warnings.filterwarnings("ignore", pattern)
