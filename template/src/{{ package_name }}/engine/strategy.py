"""How devices work together."""

import logging
from datetime import timedelta
from typing import Any

from lightning.pytorch.plugins.environments import ClusterEnvironment, LightningEnvironment, TorchElasticEnvironment
from lightning.pytorch.strategies import Strategy
from torch import nn

from .build import build
from .devices import Devices
from .errors import UserError
from .replicas import ReplicaStrategy
from .sharded_strategy import ShardedStrategy

log = logging.getLogger(__name__)


def make_strategy(config: dict[str, Any], devices: Devices, precision: str = "32-true") -> Strategy | str:
    """The strategy that `strategy=` names, or any other that a `_target_` names.

    Several devices without a choice work as with `ddp`: one process per device, gradients averaged. DataParallel,
    which copies the model in every step, is not offered.
    """
    if "_target_" in config:
        strategy: Strategy = build(config, "strategy")
        return strategy
    if config["name"] not in ("auto", "ddp", "fsdp"):
        raise UserError(
            f"strategy.name must be auto, ddp or fsdp, or strategy._target_ a class (got {config['name']!r})"
        )
    if devices.world_size == 1:
        return "auto"
    backend = "nccl" if devices.kind == "cuda" else "gloo"
    if config["name"] == "fsdp":
        if precision == "16-mixed":
            raise UserError("strategy=fsdp does not scale the loss as float16 needs it: type amp=bf16 or amp=off")
        return ShardedStrategy(config["min_shard_parameters"], backend, devices.world_size, config["timeout"])
    settings = {key: value for key, value in config.items() if key not in ("name", "sync_batchnorm", "timeout")}
    return ReplicaStrategy(process_group_backend=backend, timeout=timedelta(seconds=config["timeout"]), **settings)


def wants_sync_batchnorm(config: dict[str, Any], devices: Devices, module: nn.Module) -> bool:
    """SyncBatchNorm exists for GPUs only, and Lightning does not set it up for fsdp.

    Elsewhere each process normalises its own share, and the log says so where there is a BatchNorm.
    """
    has_any = any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in module.modules())
    sharded = config.get("name") == "fsdp"
    if devices.world_size == 1 or not has_any or not (sharded or config.get("sync_batchnorm", False)):
        return False
    if sharded or devices.kind == "cpu":
        log.info(
            "BatchNorm is not synchronised: it cannot be %s; model.net.norm=group needs no synchronisation",
            "with strategy=fsdp" if sharded else "on the CPU",
        )
        return False
    return True


def environment(devices: Devices) -> ClusterEnvironment:
    """Who started this process, told to Lightning, which would otherwise guess from variables that a shell may leak."""
    return LightningEnvironment() if devices.world_size == 1 else TorchElasticEnvironment()
