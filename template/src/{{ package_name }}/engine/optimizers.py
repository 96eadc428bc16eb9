"""Which parameters an optimizer gets, and with which weight decay."""

from typing import Any, Protocol

from torch import nn
from torch.optim import Optimizer

NORMS = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)


class OptimizerFactory(Protocol):
    """Makes an optimizer from parameter groups: `functools.partial` of its class, or Hydra's `_partial_: true`."""

    def __call__(self, params: list[dict[str, Any]], /) -> Optimizer: ...


def parameter_groups(module: nn.Module) -> list[dict[str, Any]]:
    """Two groups of trainable parameters: `weights`, and `biases_and_norms` with a weight decay of 0.

    Biases, the weights of normalisation layers and other vectors are spared: decay would pull scales and offsets to
    zero without making the function simpler (Goyal et al. 2017, section 5.3). A parameter that two modules share is
    listed once.
    """
    decayed: list[nn.Parameter] = []
    spared: list[nn.Parameter] = []
    seen: set[nn.Parameter] = set()
    for layer in module.modules():
        for name, parameter in layer.named_parameters(recurse=False):
            if parameter in seen or not parameter.requires_grad:
                continue
            seen.add(parameter)
            is_spared = isinstance(layer, NORMS) or name.endswith("bias") or parameter.ndim < 2
            (spared if is_spared else decayed).append(parameter)
    groups: list[dict[str, Any]] = []
    if decayed:
        groups.append({"params": decayed, "name": "weights"})
    if spared:
        groups.append({"params": spared, "name": "biases_and_norms", "weight_decay": 0.0})
    return groups
