"""Rebuilding what a run trained, from a checkpoint alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import torch

from . import network
from .config import Config
from .data_module import DataModule
from .errors import UserError
from .module import TrainingModule
from .normalisation import Normalisation
from .run_folders import find_checkpoint
from .run_record import NAME
from .targets import build_harmless

CONFIG_KEY = "config"  # where a checkpoint keeps the whole config


@dataclass(frozen=True)
class Run:
    """A trained model and what it was trained with.

    Attributes:
        checkpoint: The file it came from.
        config: The resolved config, plain data.
        module: The LightningModule in evaluation mode, on the CPU.
        data: The data module; after `setup("fit")` it has its datasets and loaders.
        normalisation: What the inputs were normalised with, where the data module states it; new ones need the same.
    """

    checkpoint: Path
    config: Config
    module: TrainingModule
    data: DataModule
    normalisation: Normalisation | None = None


def load_run(path: str | Path, trusted_targets: list[str] | None = None) -> Run:
    """Rebuilds a run from its directory (the best checkpoint there), from a checkpoint file, or the `latest` one.

    Raises:
        UserError: there is no checkpoint, or its config names something that must not be built.
    """
    checkpoint = find_checkpoint(path)
    stored = load_checkpoint(checkpoint)
    config = stored[CONFIG_KEY]
    trusted = tuple(trusted_targets or ())
    model = {key: value for key, value in config["model"].items() if key not in ("optimizer", "scheduler")}
    module: TrainingModule = build_harmless(model, "model", TrainingModule, trusted)
    data: DataModule = build_harmless(config["data"], "data", DataModule, trusted)
    if (directory := checkpoint.parent.parent).joinpath(NAME).exists():
        data.run_directory = directory
    try:
        module.load_state_dict(stored["state_dict"])
    except RuntimeError as error:
        raise misfit(checkpoint, error) from error
    network.prepare(module)
    return Run(checkpoint, config, module.eval(), data, Normalisation.stored_in(stored))


def misfit(checkpoint: Path, error: RuntimeError) -> UserError:
    """What torch says of weights whose names or shapes are not the model's, in one line."""
    return UserError(f"{checkpoint} does not fit the model as it is in models/ now: {' '.join(str(error).split())}")


def load_checkpoint(path: Path, mmap: bool = False) -> dict[str, Any]:
    """Reads a checkpoint to the CPU; it holds plain containers and tensors only, so no code of it runs.

    With `mmap`, tensors stay on the disk until they are used: the states of an optimizer may exceed a rank's memory.
    """
    if path.is_file() and not is_zipfile(path):
        raise UserError(f"{path} cannot be read as a checkpoint: it is cut short, or another kind of file")
    try:
        stored = torch.load(path, map_location="cpu", mmap=mmap, weights_only=True)
    except Exception as error:  # unpickling fails in many ways
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"{path} cannot be read as a checkpoint: {reason}") from error
    config = stored.get(CONFIG_KEY) if isinstance(stored, dict) else None
    parts = ("model", "data", "amp", "seeding")
    if not isinstance(config, dict) or not all(isinstance(config.get(part), dict) for part in parts):
        raise UserError(f"{path} is no checkpoint of this project: it does not hold the config of a run")
    return stored
