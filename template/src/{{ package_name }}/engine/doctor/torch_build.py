"""What torch was built for, and whether the driver and the GPUs of this machine are that."""

import ctypes
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .bounded import Answer
from .finding import INSTALL, Finding, warn_if

KERNEL_MODULE = Path("/proc/driver/nvidia/version")
LIBRARY = "libcuda.so.1"
SELECTOR = "https://pytorch.org/get-started/locally"


class Driver(NamedTuple):
    """The NVIDIA driver: the version of its kernel module, and the newest CUDA that its library knows, as `(13, 0)`."""

    version: str = ""
    cuda: tuple[int, int] | None = None


def driver() -> Driver:
    """Asks the driver; WSL shows no kernel module, a container may lack the library, another machine has neither."""
    module = KERNEL_MODULE.read_text("utf-8") if KERNEL_MODULE.exists() else ""
    version = re.search(r"\d+\.\d+(\.\d+)?", module)
    number = ctypes.c_int()
    try:
        ctypes.CDLL(LIBRARY).cuDriverGetVersion(ctypes.byref(number))
    except OSError:
        return Driver(version[0] if version else "")
    return Driver(version[0] if version else "", (number.value // 1000, number.value % 1000 // 10))


def facts() -> Iterator[Any]:
    """What torch says of itself, then name, free and total bytes of each GPU; to be run in a process of its own."""
    import torch
    from torch import distributed
    from torch.cuda import nccl

    cudnn, count = torch.backends.cudnn.version(), torch.cuda.device_count() if torch.cuda.is_available() else 0
    yield {
        "torch": torch.__version__,
        "CUDA": torch.version.cuda,
        "cuDNN": f"{cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100}" if cudnn else None,
        "NCCL": ".".join(map(str, nccl.version())) if torch.version.cuda and distributed.is_nccl_available() else None,
        "gpus": count,
    }
    for index in range(count):
        yield (torch.cuda.get_device_name(index), *torch.cuda.mem_get_info(index))


def judge(answer: Answer, driver: Driver) -> Iterator[Finding]:
    """The build, the driver, and the memory of each GPU."""
    if not answer.values:
        yield Finding("torch", f"cannot be used: {answer.lost}", "failed", f"{INSTALL}, or {SELECTOR}")
        return
    build, *memories = answer.values
    parts = (f"{name} {build[name]}" for name in ("torch", "CUDA", "cuDNN", "NCCL") if build[name])
    yield Finding("torch", ", ".join(parts))
    yield _judge_driver(build["CUDA"], build["gpus"], driver)
    for index, (name, free, total) in enumerate(memories):
        found = f"{name}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free"
        cure = "nvidia-smi shows which processes hold the rest"
        yield warn_if(free < total / 2, f"cuda:{index} memory", found, cure)


def _judge_driver(cuda: str | None, gpus: int, driver: Driver) -> Finding:
    """A driver runs every torch that is built for its own major version of CUDA, or for an older one."""
    if driver == Driver():
        return Finding("driver", "none of NVIDIA" if gpus else "none of NVIDIA: everything is computed on the CPU")
    if driver.cuda is None:
        found, cure = (
            f"NVIDIA {driver.version}, but {LIBRARY} is missing",
            "docker run --gpus all, or install the library",
        )
        return Finding("driver", found, "warning", cure)
    found = f"NVIDIA {driver.version} for CUDA {driver.cuda[0]}.{driver.cuda[1]}".replace("  ", " ")
    if cuda is None:
        return Finding("driver", f"{found}, but torch has no CUDA", "warning", f"choose a torch for CUDA: {SELECTOR}")
    if driver.cuda[0] < int(cuda.partition(".")[0]):
        cure = f"install a newer driver, or a torch for CUDA {driver.cuda[0]}: {SELECTOR}"
        return Finding("driver", f"{found} is too old for a torch that is built for CUDA {cuda}", "failed", cure)
    if not gpus and os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        found = f"{found}; CUDA_VISIBLE_DEVICES hides the GPUs"
        return Finding("driver", found, "note", "unset CUDA_VISIBLE_DEVICES")
    if not gpus:
        cure = "nvidia-smi shows whether it works"
        return Finding("driver", f"{found}, but torch finds no GPU", "failed" if driver.version else "warning", cure)
    return Finding("driver", found)
