"""Which devices a run uses, decided before Lightning is imported."""

from dataclasses import dataclass
from typing import Any, Literal

from .errors import UserError

TIMEOUT = 1800  # seconds that ranks wait for each other where a strategy of the project's own says nothing

Kind = Literal["cpu", "cuda", "mps"]


@dataclass(frozen=True)
class Devices:
    """The devices of one machine.

    Attributes:
        kind: What they are.
        indices: Which ones; on the CPU, one for each process.
        num_nodes: How many machines like this one take part.
    """

    kind: Kind
    indices: tuple[int, ...]
    num_nodes: int = 1

    @property
    def world_size(self) -> int:
        return len(self.indices) * self.num_nodes


def choose(accelerator: str, devices: Any, num_nodes: int = 1, started: tuple[int, int] | None = None) -> Devices:
    """Reads `trainer.accelerator` (auto, cpu, gpu, cuda, mps) and `trainer.devices` (a number, a list, auto or -1).

    On the CPU, `devices` is a number of processes: it must be asked for with `accelerator=cpu`, since several of them
    are rarely what a person wants who expects GPUs.

    Args:
        started: Processes on each machine and machines, where torchrun or SLURM has started them; 1 may then stand
            for the defaults of `devices` and `num_nodes`.

    Raises:
        UserError: the machine does not have them, or others were started.
    """
    kind, available = _find(accelerator)
    if started is not None:
        here, nodes = started
        asked = len(devices) if isinstance(devices, (list, tuple)) else devices
        if asked not in (1, here, "auto", -1, "-1") or num_nodes not in (1, nodes):
            raise UserError(
                f"{here} processes were started on each of {nodes} machines, but trainer.devices={devices} and "
                f"trainer.num_nodes={num_nodes}: leave both out"
            )
        devices, num_nodes = devices if asked == here > 1 else here, nodes
    elif num_nodes > 1:
        raise UserError(f"trainer.num_nodes={num_nodes}: torchrun or SLURM starts a job on several machines")
    if devices in ("auto", -1, "-1"):
        return Devices(kind, tuple(range(available)), num_nodes)
    if isinstance(devices, (list, tuple)):
        indices = tuple(devices)
        if not indices or any(isinstance(index, bool) or not isinstance(index, int) for index in indices):
            raise UserError(f"trainer.devices must be a number, a list such as [0,1], or auto (got {devices!r})")
        if len(set(indices)) < len(indices):
            raise UserError(f"trainer.devices={list(indices)} names a device twice")
    elif isinstance(devices, int) and not isinstance(devices, bool) and devices > 0:
        indices = tuple(range(devices))
    else:
        raise UserError(f"trainer.devices must be a number from 1, a list such as [0,1], or auto (got {devices!r})")
    counts_cores = kind == "cpu" and (accelerator == "cpu" or started is not None)
    if not counts_cores and (missing := [index for index in indices if not 0 <= index < available]):
        cure = "type trainer.devices=1"
        if kind == "cpu":
            cure += ", or trainer.accelerator=cpu for several processes on the CPU"
        raise UserError(
            f"trainer.devices={devices} asks for device {missing[0]}, but this machine has "
            f"{available} ({kind}, numbered from 0): {cure}"
        )
    return Devices(kind, indices, num_nodes)


def _find(accelerator: str) -> tuple[Kind, int]:
    if accelerator == "cpu":
        return "cpu", 1
    if accelerator not in ("auto", "gpu", "cuda", "mps"):
        raise UserError(f"trainer.accelerator must be auto, cpu or gpu (got {accelerator!r})")
    import torch  # takes a second or more, and a run on the CPU can be decided without it

    if accelerator != "mps" and torch.cuda.is_available():
        return "cuda", torch.cuda.device_count()
    if accelerator != "cuda" and torch.backends.mps.is_available():
        return "mps", 1
    if accelerator == "auto":
        return "cpu", 1
    raise UserError(f"trainer.accelerator={accelerator}, but torch finds no such device here: type trainer=cpu")
