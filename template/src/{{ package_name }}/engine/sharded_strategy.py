"""Training with a sharded network, and checkpoints that do not show it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.strategies import ModelParallelStrategy, Strategy
from lightning_utilities.core.apply_func import apply_to_collection
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.optim import SGD, Adagrad, Optimizer

from .errors import UserError

NOT_FUSED = (SGD, Adagrad)  # whose fused kernels torch cannot run on sharded parameters


class ShardedStrategy(ModelParallelStrategy):
    """Lightning's strategy for torch's `fully_shard`; its checkpoints are those of any other strategy.

    Lightning's own reads optimizer states in the order of the model's parameters, which is not that of an optimizer
    with parameter groups: moments would go to other parameters. It also fails where there are none, as with plain SGD.

    Args:
        min_shard_parameters: Parameters that make a part of the network worth gathering by itself.
        backend: `nccl` or `gloo`.
        world_size: The number of all processes.
        timeout: Seconds that a rank waits for the others.
    """

    lightning_restore_optimizer = True

    def __init__(self, min_shard_parameters: int, backend: str, world_size: int, timeout: float) -> None:
        if not isinstance(min_shard_parameters, int):
            raise UserError(f"strategy.min_shard_parameters must be a whole number (got {min_shard_parameters!r})")
        super().__init__(world_size, 1, False, backend, timedelta(seconds=timeout))
        self.min_shard_parameters = min_shard_parameters

    def setup_optimizers(self, trainer: Trainer) -> None:
        super().setup_optimizers(trainer)
        for optimizer in self.optimizers:
            if isinstance(optimizer, NOT_FUSED) and optimizer.defaults["fused"]:
                raise UserError(f"torch has no fused {type(optimizer).__name__} for shares: type optimizer.fused=false")

    def optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        """The whole state in plain tensors on the CPU; elsewhere than in the first process, None in their place."""
        state = Strategy.optimizer_state(self, optimizer)
        return apply_to_collection(state, DTensor, self._gather)

    def _gather(self, tensor: DTensor) -> Tensor | None:
        whole = tensor.full_tensor()
        return whole.cpu() if self.is_global_zero else None

    def load_checkpoint(self, checkpoint_path: Any, weights_only: bool | None = None) -> dict[str, Any]:
        """Reads from the disk only what is used: each process needs its share, but the file may exceed its memory."""
        return torch.load(checkpoint_path, map_location="cpu", mmap=True, weights_only=weights_only)

    def load_model_state_dict(self, checkpoint: Mapping[str, Any], strict: bool = True) -> None:
        assert self.lightning_module is not None
        own = self.lightning_module.state_dict()
        shares = {name: _share(value, own.get(name)) for name, value in checkpoint["state_dict"].items()}
        self.lightning_module.load_state_dict(shares, strict=strict)

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        for optimizer, saved in zip(self.optimizers, checkpoint["optimizer_states"], strict=True):
            numbers = [number for group in saved["param_groups"] for number in group["params"]]
            own = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            like = dict(zip(numbers, own, strict=True))
            state = {
                number: {name: _share(value, like[number]) for name, value in values.items()}
                for number, values in saved["state"].items()
            }
            optimizer.load_state_dict({**saved, "state": state})


def _share(value: Any, like: Any) -> Any:
    """This process's share of a whole tensor, as `like` is shared; anything else as it is."""
    if isinstance(like, DTensor) and isinstance(value, Tensor) and value.shape == like.shape:
        return distribute_tensor(value, like.device_mesh, like.placements, src_data_rank=None)
    return value
