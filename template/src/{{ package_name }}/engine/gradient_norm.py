"""The norm of the gradients that an optimizer step uses."""

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn.utils import get_total_norm
from torch.optim import Optimizer


def values(gradient: Tensor) -> Tensor:
    """What a sparse gradient holds, as of `nn.Embedding(sparse=True)`, each place once; another one as it is."""
    return gradient.coalesce().values() if gradient.is_sparse else gradient


class GradientNorm(Callback):
    """Logs `grad_norm`, the L2 norm of all gradients, unscaled and before clipping, every `log_every_n_steps` steps."""

    def __init__(self) -> None:
        self.total: Tensor | float = 0.0
        self.measured: Tensor | float = 0.0

    @property
    def mean(self) -> Tensor:
        """Of the finite norms that were measured in this epoch; NaN if there are none."""
        return torch.as_tensor(self.total) / torch.as_tensor(self.measured)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.total = self.measured = 0.0

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer) -> None:
        every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]
        if (trainer.global_step + 1) % every:
            return
        gradients = [values(parameter.grad) for parameter in pl_module.parameters() if parameter.grad is not None]
        norm = get_total_norm(gradients, foreach=True)
        whole = norm.full_tensor() if isinstance(norm, DTensor) else norm  # each process has a share with strategy=fsdp
        pl_module.log("grad_norm", whole, on_step=True, on_epoch=False)
        is_finite = whole.isfinite()  # a tensor: nothing waits for the device
        self.total = self.total + whole.where(is_finite, 0)
        self.measured = self.measured + is_finite
