"""Arithmetic on a device, compared with float64 on the CPU."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .bounded import Answer
from .finding import Finding
from .torch_build import SELECTOR

if TYPE_CHECKING:
    from torch import Tensor, dtype

# Shares of the largest value. Those measured are 4e-7 in float32, and 5e-3 in bfloat16.
LIMITS = {"product": 1e-5, "convolution": 1e-5, "gradient": 1e-5, "bfloat16": 5e-2, "float16": 1e-2, "compiled": 1e-5}
QUICK_COMPILER = {  # 3 instead of 15 seconds: no search for the widest vector instructions, no prepared headers
    "TORCHINDUCTOR_VEC_ISA_OK": "0",
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}
WITHOUT_TF32 = {"NVIDIA_TF32_OVERRIDE": "0"}  # which some containers turn on


def compute(device: str) -> Iterator[dict[str, float]]:
    """Yields the errors of what a training computes, then that of a compiled function, by the names of `LIMITS`."""
    os.environ |= WITHOUT_TF32 | QUICK_COMPILER
    yield errors(device)
    yield {"compiled": compiled(device)}


def errors(device: str) -> dict[str, float]:
    """Of a matrix product, a convolution, the gradient of `sum(tanh(x @ w)²)`, and that gradient under autocast."""
    import torch
    from torch.nn.functional import conv2d

    draw = torch.Generator().manual_seed(0)
    x, w = (torch.randn(256, 256, generator=draw, dtype=torch.float64) / 4 for _ in range(2))
    images, kernel = (torch.randn(8, 8, size, size, generator=draw, dtype=torch.float64) for size in (16, 3))
    tanh = (x @ w).tanh()
    gradient = x.T @ (2 * tanh * (1 - tanh**2))

    def step(precision: "dtype") -> tuple["Tensor", "Tensor"]:
        weight = w.float().to(device).requires_grad_()
        with torch.autocast(torch.device(device).type, precision, enabled=precision != torch.float32):
            product = x.float().to(device) @ weight
        if product.dtype != precision:
            raise TypeError(f"autocast to {precision} computes in {product.dtype}")
        product.float().tanh().square().sum().backward()
        assert weight.grad is not None
        return product, weight.grad

    product, own_gradient = step(torch.float32)
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        convolution = conv2d(images.float().to(device), kernel.float().to(device))
    found = {
        "product": _error(product, x @ w),
        "convolution": _error(convolution, conv2d(images, kernel)),
        "gradient": _error(own_gradient, gradient),
    }
    if device == "cpu" or torch.cuda.is_bf16_supported(including_emulation=False):
        found["bfloat16"] = _error(step(torch.bfloat16)[1], gradient)
    if device != "cpu":
        found["float16"] = _error(step(torch.float16)[1], gradient)
    return found


def compiled(device: str) -> float:
    """Of a function that `torch.compile` has turned into a kernel."""
    import torch

    @torch.compile
    def wave(x: "Tensor") -> "Tensor":
        return (2 * x).sin() + x.cos()

    x = torch.linspace(-3, 3, 4096, dtype=torch.float64)
    return _error(wave(x.float().to(device)), (2 * x).sin() + x.cos())


def _error(found: "Tensor", true: "Tensor") -> float:
    return ((found.detach().cpu().double() - true).abs().max() / true.abs().max()).item()


def judge(device: str, answer: Answer) -> Iterator[Finding]:
    """What a device computed, and what `torch.compile` made for it."""
    name, uncompiled = f"{device} compile", "leave model.compile=false"
    if not answer.values:
        cure = f"choose a torch that is built for this device: {SELECTOR}"
        yield Finding(device, f"computes nothing: {answer.lost}", "failed", cure)
        return
    yield _judge_errors(device, answer.values[0], "reinstall torch, and test the hardware (nvidia-smi -q, memtest)")
    if len(answer.values) > 1:
        yield _judge_errors(name, answer.values[1], uncompiled)
        return
    cure = f"apt-get install g++ python3-dev (on a cluster: module load gcc), or {uncompiled}"
    yield Finding(name, f"torch.compile does not work: {answer.lost}", "warning", cure)


def _judge_errors(name: str, errors: dict[str, float], cure: str) -> Finding:
    wrong = {what: error for what, error in errors.items() if not error <= LIMITS[what]}  # NaN is wrong too
    found = ", ".join(f"{what} {error:.0e}" for what, error in (wrong or errors).items())
    if wrong:
        return Finding(name, f"wrong results, which differ from float64 by {found}", "failed", cure)
    return Finding(name, f"differs from float64 by {found}")
