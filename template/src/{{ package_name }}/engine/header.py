"""What a run says of itself before and after training."""

import logging
import math
from collections.abc import Mapping

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from . import batch_size
from .config import Config
from .devices import Devices
from .path_options import short

log = logging.getLogger(__name__)


class Header(Callback):
    """Prints project, run directory, devices, precision, effective batch size and the length of the training."""

    def __init__(self, config: Config, devices: Devices, precision: str) -> None:
        self.config = config
        self.devices = devices
        self.precision = precision

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        for line in self._lines(trainer, pl_module):
            log.info(line)

    def _lines(self, trainer: Trainer, module: LightningModule) -> list[str]:
        config, devices = self.config, self.devices
        _, sizes = batch_size.apply(config, devices.world_size)
        batch, accumulate = sizes["batch_size"], trainer.accumulate_grad_batches
        is_known = trainer.num_training_batches < math.inf
        steps = math.ceil(trainer.num_training_batches / accumulate) if is_known else "an unknown number"
        total = trainer.estimated_stepping_batches
        seeding = config["seeding"]
        return [
            f"project    {config['project']}",
            f"run        {short(config['paths']['run'])}",
            f"model      {_model_name(module)}",
            f"device     {device_name(devices)}",
            f"precision  {self.precision}" + (" (amp=auto)" if config["amp"]["precision"] == "auto" else ""),
            f"seed       {seeding['seed']}" + (", deterministic kernels" if seeding["deterministic"] else ""),
            f"batch      {batch * accumulate * trainer.world_size} samples a step = {batch} per device"
            f" × {trainer.world_size} {'device' if trainer.world_size == 1 else 'devices'} × {accumulate} accumulated",
            *_batches_line(trainer),
            *batch_size.header_lines(config, sizes),
            f"steps      {steps} an epoch, {total if 0 < total < math.inf else 'no end of'} in all{_left_out(trainer)}",
        ]


def _batches_line(trainer: Trainer) -> list[str]:
    words: str = getattr(getattr(trainer.train_dataloader, "batch_sampler", None), "words", "")
    return [words] if words else []


def _left_out(trainer: Trainer) -> str:
    batches = getattr(trainer.train_dataloader, "batch_sampler", None)
    dropped: int = getattr(batches, "dropped", 0)
    return f"; {dropped} samples fill no step, other ones each epoch" if dropped else ""


def _model_name(module: LightningModule) -> str:
    net = getattr(module, "net", None)
    return type(module).__name__ + (f" with {type(net).__name__}" if net is not None else "")


def device_name(devices: Devices) -> str:
    """Such as `2 × NVIDIA H200` or `cpu (1 process, 2 threads)`."""
    count = len(devices.indices)
    nodes = f" on each of {devices.num_nodes} nodes" if devices.num_nodes > 1 else ""
    if devices.kind == "cpu":
        threads = torch.get_num_threads()
        return (
            f"cpu ({count} {'process' if count == 1 else 'processes'} of "
            f"{threads} {'thread' if threads == 1 else 'threads'}{nodes})"
        )
    name = torch.cuda.get_device_name(devices.indices[0]) if devices.kind == "cuda" else "Apple GPU"
    return f"{count} × {name}{nodes}"


def metrics_table(metrics: Mapping[str, float]) -> str:
    """Metrics and their values in two columns."""
    width = max(map(len, metrics), default=0)
    return "\n".join(f"{name:<{width}}  {value:>8.4f}" for name, value in metrics.items())
