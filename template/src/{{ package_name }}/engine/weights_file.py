"""`weights.safetensors`, the weights of the best checkpoint for whoever has neither this project nor Lightning."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

WEIGHTS = "weights.safetensors"
UNFINISHED = ".tmp??????"  # what the library writes to before it renames, in the same folder


def write_weights(state_dict: Mapping[str, Any], file: Path) -> None:
    """Writes the tensors of a module's state dict under its keys: `module.load_state_dict(load_file(file))` takes them.

    The format holds contiguous tensors that share no memory. Shared ones are written once under each of their keys,
    so that none is missing where the file is loaded; the module shares them again.
    """
    tensors: dict[str, torch.Tensor] = {}
    memory: set[int] = set()
    for name, value in state_dict.items():
        if not isinstance(value, torch.Tensor):
            continue  # a module's extra state, which the format cannot hold
        tensor = value.detach().cpu().contiguous()
        tensors[name] = tensor.clone() if tensor.untyped_storage().data_ptr() in memory else tensor
        memory.add(tensor.untyped_storage().data_ptr())
    file.touch()
    mode = file.stat().st_mode
    save_file(tensors, file)  # which makes a file that only its owner may read
    file.chmod(mode)
