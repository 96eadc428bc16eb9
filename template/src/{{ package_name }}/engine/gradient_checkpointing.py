"""Keeps only the input of a block for the way back, and computes the rest once more: less memory, more time."""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


def checkpointed(block: nn.Module, x: Tensor) -> Tensor:
    """What `block(x)` gives, with the same gradients and random numbers (Chen et al. 2016).

    torch by itself would count each batch twice in running statistics.
    """

    def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return nullcontext(), _kept_buffers(block)

    if torch.compiler.is_compiling():  # compiled code repeats no updates
        output: Tensor = checkpoint(block, x, use_reentrant=False)
    else:
        output = checkpoint(block, x, use_reentrant=False, context_fn=contexts)
    return output


@contextmanager
def _kept_buffers(block: nn.Module) -> Generator[None]:
    before = [(buffer, buffer.clone()) for buffer in block.buffers()]
    try:
        yield
    finally:
        for buffer, value in before:
            buffer.copy_(value)
