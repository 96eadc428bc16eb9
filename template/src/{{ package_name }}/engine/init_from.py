"""`init_from=` starts a new run with the weights of a trained one, and with nothing else of it."""

import logging
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from .errors import UserError
from .module import TrainingModule
from .path_options import short
from .runs import load_checkpoint

SHOWN = 3  # names in a message

log = logging.getLogger(__name__)


def load_weights(module: TrainingModule, file: Path, strict: bool) -> None:
    """Copies the weights of a checkpoint or a `weights.safetensors` into a module, before a strategy wraps it.

    Args:
        module: Gets the weights.
        file: What `init_from` means.
        strict: Refuse a file that does not fit in every name and shape; otherwise say what was skipped, a line each.

    Raises:
        UserError: the file cannot be read, or does not fit.
    """
    stored, own = _read(file), module.state_dict()
    skipped = [f"{name} is not in the file" for name in own.keys() - stored.keys()]
    skipped += [f"{name} is not in the model" for name in stored.keys() - own.keys()]
    skipped += [
        f"{name} is {_shape(stored[name])} in the file and {_shape(own[name])} in the model"
        for name in own.keys() & stored.keys()
        if _shape(own[name]) != _shape(stored[name])
    ]
    fitting = {name: stored[name] for name in own if name in stored and _shape(own[name]) == _shape(stored[name])}
    if (skipped and strict) or not fitting:
        more = f", and {len(skipped) - SHOWN} more" if len(skipped) > SHOWN else ""
        cure = "type init_strict=false to take the rest" if fitting else "nothing in it fits"
        raise UserError(f"init_from={short(file)}: {', '.join(sorted(skipped)[:SHOWN])}{more}: {cure}")
    module.load_state_dict(fitting, strict=False)
    log.info("weights    %s", short(file))
    for line in sorted(skipped):
        log.info("skipped    %s", line)


def _read(file: Path) -> dict[str, Any]:
    if file.suffix != ".safetensors":
        return load_checkpoint(file, mmap=True)["state_dict"]
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{file} cannot be read as weights: {error}") from error


def _shape(value: Any) -> list[int] | None:
    return list(value.shape) if isinstance(value, torch.Tensor) else None
