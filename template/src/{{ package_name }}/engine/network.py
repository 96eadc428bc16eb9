"""How a network is laid out in memory and compiled before training."""

import torch
from torch import nn

from .errors import UserError
from .module import TrainingModule


def prepare(module: TrainingModule) -> None:
    """Sets the memory format of `module.net` and compiles it in place, before a strategy wraps it.

    Only the network is compiled, and `nn.Module.compile` keeps the names of its parameters: checkpoints look the same
    with and without. A bare `nn.Sequential` is refused, since compiling one in place does nothing.
    """
    net = module.net
    if module.channels_last:
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if module.compile_network:
        if type(net) is nn.Sequential:
            raise UserError("model.compile=true has no effect on a bare nn.Sequential: make the network a class")
        backend = "inductor" if module.compile_network is True else module.compile_network
        if backend not in (backends := torch.compiler.list_backends(exclude_tags=())):
            raise UserError(f"model.compile is true, false or one of {', '.join(backends)} (got {backend!r})")
        net.compile(backend=backend)
