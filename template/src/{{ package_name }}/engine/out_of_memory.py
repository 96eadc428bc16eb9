"""What a run leaves and says when memory runs out."""

import gc
import operator
import resource
import sys
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from . import batch_size
from .config import Config
from .devices import Devices
from .errors import RunFailed
from .path_options import short
from .precision import choose_precision

LARGEST = 20  # tensors that are listed
KEEP_TWO = ("torch.optim.Adam", "torch.optim.AdamW")  # numbers for each weight, where SGD keeps one


class MemoryReport(Callback):
    """Writes `memory.txt` into the run directory (`memory-1.txt` for rank 1) while what filled the memory is there."""

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        if is_out_of_memory(exception):
            file = self.directory / (f"memory-{trainer.global_rank}.txt" if trainer.global_rank else "memory.txt")
            file.write_text(_report(pl_module), encoding="utf-8")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device, or the CPU, has no memory left; on the CPU torch raises a plain RuntimeError."""
    says = str(error) if isinstance(error, RuntimeError) else ""
    on_cpu = "can't allocate memory" in says or says == "could not create a primitive"  # of oneDNN
    return on_cpu or isinstance(error, (torch.OutOfMemoryError, MemoryError))


def explain(error: BaseException, config: Config, devices: Devices) -> RunFailed:
    """What ends the run instead of `error`: a line of it, and what to type next."""
    sentences = (str(error) or type(error).__name__).partition("\n")[0].split(". ")
    what = ". ".join(sentences[:2])  # the second one says how much was asked for
    things = _next_things(config, devices)
    lines = [f"  {settings}   {effect}" for settings, effect in things]
    found = sorted(Path(config["paths"]["run"]).glob("memory*.txt"))
    where = f"what is large stands in {short(found[0])}; " if found else ""
    message = "\n".join([f"out of memory: {what}", f"{where}try", *lines])
    return RunFailed(message, "out_of_memory", {"allocator": what, "try": [settings for settings, _ in things]})


def _next_things(config: Config, devices: Devices) -> list[tuple[str, str]]:
    world_size = devices.world_size
    batch = batch_size.apply(config, world_size)[1]["batch_size"]
    accumulate = 2 * config["trainer"].get("accumulate_grad_batches", 1)
    things: list[tuple[str, str]] = []
    if batch > 1:
        halved = "" if config["data"].get("global_batch_size") else f"data.batch_size={batch // 2} "
        effect = f"{batch // 2} samples at a time instead of {batch}, with the same step"
        things.append((f"{halved}trainer.accumulate_grad_batches={accumulate}", effect))
    if choose_precision(config["amp"]["precision"], devices.kind) == "32-true":
        things.append(("amp=bf16", "2 bytes instead of 4 for most of what a layer keeps for its gradient"))
    if config["model"].get("net", {}).get("gradient_checkpointing") is False:
        things.append(("model.net.gradient_checkpointing=true", "keeps blocks' inputs only, for some 30 % more time"))
    if (config["model"].get("optimizer") or {}).get("_target_") in KEEP_TWO:
        things.append(("optimizer=sgd", "keeps 1 number for each weight instead of 2; needs another optimizer.lr"))
    if world_size > 1 and config["strategy"]["name"] != "fsdp":
        things.append(("strategy=fsdp", f"each device keeps 1/{world_size} of weights, gradients and optimizer state"))
    return things


def _report(module: LightningModule) -> str:
    summary = torch.cuda.memory_summary(module.device) if module.device.type == "cuda" else ""
    parameters = {id(parameter): name for name, parameter in module.named_parameters()}
    tensors: list[Any] = [part for part in gc.get_objects() if issubclass(type(part), torch.Tensor) and _bytes(part)]
    tensors.sort(key=_bytes, reverse=True)
    lines = [summary, f"peak of the process {peak_of_process() / 1e6:.1f} MB"]
    for title, are_parameters in (("parameters", True), ("other tensors that Python holds", False)):
        lines += ["", f"largest {title}"]
        chosen = [tensor for tensor in tensors if (id(tensor) in parameters) is are_parameters]
        lines += [f"{_size(tensor)}  {parameters.get(id(tensor), '')}".rstrip() for tensor in chosen[:LARGEST]]
    return "\n".join([*lines, ""]).lstrip()


def peak_of_process() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _bytes(tensor: torch.Tensor) -> int:
    """0 for the stand-ins of a compiler, whose sizes are symbols."""
    try:
        return operator.index(tensor.nbytes)
    except Exception:  # each kind of symbol refuses in its own way
        return 0


def _size(tensor: torch.Tensor) -> str:
    return f"{tensor.nbytes / 1e6:12.3f} MB  {tensor.device}  {tensor.dtype}  {list(tensor.shape)}"
