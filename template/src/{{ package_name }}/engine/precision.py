"""What `amp=` becomes on a device."""

from typing import Any, get_args

import torch
from lightning.fabric.plugins.precision.precision import _PRECISION_INPUT_STR  # names that Lightning accepts

from .devices import Kind
from .errors import UserError


def choose_precision(precision: Any, kind: Kind) -> str:
    """Lightning's name of the precision: `auto` is bf16 on a GPU that has it, fp16 on another GPU, fp32 on the CPU.

    Raises:
        UserError: fp16 on the CPU. Lightning would train in bf16 there without a word.
    """
    if precision == "auto":
        if kind == "cuda":
            return "bf16-mixed" if torch.cuda.is_bf16_supported(including_emulation=False) else "16-mixed"
        return "16-mixed" if kind == "mps" else "32-true"
    if precision not in (names := get_args(_PRECISION_INPUT_STR)):
        raise UserError(f"amp.precision must be auto or one of {', '.join(names)} (got {precision!r})")
    if precision.startswith("16") and kind == "cpu":
        raise UserError("amp=fp16 needs a GPU, float16 has no fast kernels on the CPU: type amp=bf16 or amp=off")
    return str(precision)
