"""What ddp and fsdp leave to others: equal buffers in evaluation, a clear word on unused parameters."""

import re

import torch.distributed as distributed
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.strategies import DDPStrategy
from torch import nn

from .errors import UserError


class EqualBuffers(Callback):
    """Gives all ranks the buffers of rank 0 before they validate or test.

    Running statistics of BatchNorm differ between ranks after a training step; DDP evens them out before the next one
    only. Without this, ranks would evaluate different models, and only rank 0 the one in the checkpoint.
    """

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.world_size > 1:
            for buffer in pl_module.buffers():
                distributed.broadcast(buffer, src=0)

    on_test_start = on_validation_start


class ReplicaStrategy(DDPStrategy):
    """Lightning's DDP. It keeps torch's words on an error, which number the parameters that no step used."""

    def on_exception(self, exception: BaseException) -> None:
        pass


def unused_parameters(error: RuntimeError, module: nn.Module) -> UserError | None:
    """What DDP says of parameters that a step did not use, with their names; None for any other error."""
    found = re.search(r"indices which did not receive grad for rank \d+: ([\d ]+)", str(error))
    if found is None:
        return None
    names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
    unused = ", ".join(names[int(index)] for index in found[1].split())
    return UserError(
        f"a training step did not use the parameters {unused}: leave them out of the model, or type "
        "strategy.find_unused_parameters=true"
    )
