"""Sharding a network over all devices with torch's `fully_shard`."""

from collections import Counter
from typing import TYPE_CHECKING

from lightning.pytorch.callbacks import Callback, WeightAveraging
from torch import nn
from torch.distributed.fsdp import FSDPModule, fully_shard

from .build import mistake
from .errors import UserError
from .sharded_strategy import ShardedStrategy

if TYPE_CHECKING:
    from .module import TrainingModule


def shard(module: "TrainingModule") -> None:
    """Shards `module.net` in place where the trainer uses `strategy=fsdp`; does nothing elsewhere or a second time.

    Each smallest part with enough parameters is gathered when its forward is called and let go after it; what no part
    has taken is gathered with the net. Not parted are weights that two parts share, and those of attention, which
    reads the weight of its projection without calling it; a part of yours that does so needs a larger
    `strategy.min_shard_parameters`.

    Raises:
        UserError: something that a sharded network cannot do.
    """
    if module.device_mesh is None or not isinstance(strategy := module.trainer.strategy, ShardedStrategy):
        return
    _refuse(module)
    net = module.net
    if isinstance(net, FSDPModule):
        return net.reshard()  # a validation leaves what was gathered with the net
    read = {part for layer in net.modules() if isinstance(layer, nn.MultiheadAttention) for part in layer.children()}
    uses = Counter(parameter for _, parameter in net.named_parameters(remove_duplicate=False))
    try:
        for part in reversed(list(net.modules())):  # the smaller ones first
            # `uses` does not have the parameters of parts that are sharded: these are new objects
            left = Counter(own for _, own in part.named_parameters(remove_duplicate=False) if own in uses)
            is_called = part not in read and type(part).forward is not nn.Module.forward
            is_large = sum(own.numel() for own in left) >= strategy.min_shard_parameters
            if part is net or (is_called and is_large and left.items() <= uses.items()):
                fully_shard(part, mesh=module.device_mesh["data_parallel"])
    except (ValueError, NotImplementedError) as error:
        raise mistake("strategy=fsdp", error) from error


def _refuse(module: "TrainingModule") -> None:
    callbacks: list[Callback] = module.trainer.callbacks  # type: ignore[attr-defined]
    if any(isinstance(callback, WeightAveraging) for callback in callbacks):
        raise UserError("strategy=fsdp cannot average weights: leave out callbacks=ema, or type strategy=ddp")
    if module.channels_last:
        raise UserError("strategy=fsdp cannot shard channels_last weights: type model.channels_last=false")
    inside = set(module.net.parameters())
    for name, parameter in module.named_parameters():
        if parameter.requires_grad and parameter not in inside:
            raise UserError(f"strategy=fsdp trains model.net only, and {name} is outside of it: type strategy=ddp")
