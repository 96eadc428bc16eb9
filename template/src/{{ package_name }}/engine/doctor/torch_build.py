"""What torch was built for, and whether the driver and the GPUs of this machine are that."""

import ctypes
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .finding import Finding, warn_if

KERNEL_MODULE = Path("/proc/driver/nvidia/version")
SELECTOR = "https://pytorch.org/get-started/locally"


class Driver(NamedTuple):
    """The NVIDIA driver: its version, and the newest CUDA that it knows, as `(13, 0)`."""

    version: str
    cuda: tuple[int, int]


def driver() -> Driver | None:
    """Asks the driver's library; a machine without a GPU has none."""
    number = ctypes.c_int()
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number))
    except OSError:
        return None
    module = KERNEL_MODULE.read_text("utf-8") if KERNEL_MODULE.exists() else ""  # WSL has none
    version = re.search(r"\d+\.\d+(\.\d+)?", module)
    return Driver(version[0] if version else "", (number.value // 1000, number.value % 1000 // 10))


def facts() -> Iterator[dict[str, Any]]:
    """What torch says of itself and of each GPU; to be run in a process of its own."""
    import torch
    from torch import distributed
    from torch.cuda import nccl

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    yield {
        "torch": torch.__version__,
        "CUDA": torch.version.cuda,
        "cuDNN": torch.backends.cudnn.version(),
        "NCCL": ".".join(map(str, nccl.version())) if torch.version.cuda and distributed.is_nccl_available() else None,
        "gpus": [(torch.cuda.get_device_name(index), *torch.cuda.mem_get_info(index)) for index in range(count)],
    }


def judge(build: dict[str, Any], driver: Driver | None) -> list[Finding]:
    """The build, the driver, and each GPU's memory."""
    parts = ", ".join(f"{name} {build[name]}" for name in ("torch", "CUDA", "cuDNN", "NCCL") if build[name])
    memory = [
        warn_if(
            free < total / 2,
            f"cuda:{index} memory",
            f"{name}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free",
            "nvidia-smi shows which processes hold the rest",
        )
        for index, (name, free, total) in enumerate(build["gpus"])
    ]
    return [Finding("torch", parts), _judge_driver(build["CUDA"], len(memory), driver), *memory]


def _judge_driver(cuda: str | None, gpus: int, driver: Driver | None) -> Finding:
    """A driver runs every torch that is built for its own major version of CUDA, or for an older one."""
    if driver is None:
        return Finding("driver", "none of NVIDIA" if gpus else "none of NVIDIA: everything is computed on the CPU")
    found = f"NVIDIA {driver.version} for CUDA {driver.cuda[0]}.{driver.cuda[1]}".replace("  ", " ")
    if cuda is None:
        return Finding("driver", f"{found}, but torch has no CUDA", "warning", f"choose a torch for CUDA: {SELECTOR}")
    if driver.cuda[0] < int(cuda.partition(".")[0]):
        cure = f"install a newer driver, or a torch for CUDA {driver.cuda[0]}: {SELECTOR}"
        return Finding("driver", f"{found} is too old for a torch that is built for CUDA {cuda}", "failed", cure)
    if not gpus and os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return Finding("driver", f"{found}; CUDA_VISIBLE_DEVICES hides the GPUs", "note")
    if not gpus:
        return Finding("driver", f"{found}, but torch finds no GPU", "failed", "nvidia-smi shows whether it works")
    return Finding("driver", found)
