"""Private names of Lightning and torch that the engine needs; `tests/test_engine_parts.py` notices a lost one."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import LightningModule
from torch.optim import Optimizer


class PlainHookName(LightningModule):
    """Stores the name of the running hook as a plain attribute.

    Lightning sets it some 56 times a step through `nn.Module.__setattr__`, which looks for parameters, buffers and
    modules each time: 6 % of a small model's step.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_current_fx_name":
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)


def unscale_before_clipping(optimizer: Optimizer) -> None:
    """Lets Lightning unscale the gradients of a fused optimizer, as it does for every other one.

    A fused optimizer announces that it unscales by itself. Lightning then refuses to clip, and logged norms would be
    those of scaled gradients.
    """
    if hasattr(optimizer, "_step_supports_amp_scaling"):
        optimizer._step_supports_amp_scaling = False  # type: ignore[attr-defined]
