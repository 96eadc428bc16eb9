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

log = logging.getLogger(__name__)


def make_strategy(config: dict[str, Any], devices: Devices) -> Strategy | str:
    """The strategy that `strategy=` names, or any other that a `_target_` names.

    Several devices without a choice work as with `ddp`: one process per device, gradients averaged. DataParallel,
    which copies the model in every step, is not offered.
    """
    if "_target_" in config:
        strategy: Strategy = build(config, "strategy")
        return strategy
    if config["name"] not in ("auto", "ddp"):
        raise UserError(f"strategy.name must be auto or ddp, or strategy._target_ a class (got {config['name']!r})")
    if devices.world_size == 1:
        return "auto"
    settings = {key: value for key, value in config.items() if key not in ("name", "sync_batchnorm", "timeout")}
    backend = "nccl" if devices.kind == "cuda" else "gloo"
    return ReplicaStrategy(process_group_backend=backend, timeout=timedelta(seconds=config["timeout"]), **settings)


def wants_sync_batchnorm(config: dict[str, Any], devices: Devices, module: nn.Module) -> bool:
    """SyncBatchNorm exists for GPUs only; on the CPU each process normalises its own share, and the log says so."""
    has_any = any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in module.modules())
    if devices.world_size == 1 or not has_any or not config.get("sync_batchnorm", False):
        return False
    if devices.kind == "cpu":
        log.info(
            "BatchNorm is not synchronised: it cannot be on the CPU; model.net.norm=group needs no synchronisation"
        )
        return False
    return True


def environment(devices: Devices) -> ClusterEnvironment:
    """Who started this process, told to Lightning, which would otherwise guess from variables that a shell may leak."""
    return LightningEnvironment() if devices.world_size == 1 else TorchElasticEnvironment()
