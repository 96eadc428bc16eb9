"""An all-reduce over processes of this machine, as gradients travel between devices."""

from collections.abc import Iterator
from datetime import timedelta

from .bounded import Answer, Task
from .finding import Finding

COUNT = 1024  # float32 holds the sums exactly, up to 100 ranks
CURES = {
    "gloo": "export GLOO_SOCKET_IFNAME=lo, or enter this host's name in /etc/hosts",
    "nccl": "NCCL_DEBUG=INFO tells why; often NCCL_P2P_DISABLE=1 or a larger /dev/shm helps",
}


def tasks(backend: str, world_size: int, store: str, seconds: int) -> list[Task]:
    """One for each rank; they meet at the file `store`."""
    return [Task(reduce, (backend, rank, world_size, store, seconds - 5), seconds) for rank in range(world_size)]


def reduce(backend: str, rank: int, world_size: int, store: str, timeout: int) -> Iterator[float]:
    """Adds up numbers that each rank has multiplied by its rank + 1, and yields the largest error."""
    import torch
    from torch import distributed as group

    limit = timedelta(seconds=timeout)
    device = torch.device("cuda", rank) if backend == "nccl" else torch.device("cpu")
    group.init_process_group(
        backend, store=group.FileStore(store, world_size), rank=rank, world_size=world_size, timeout=limit
    )
    numbers = torch.arange(COUNT, dtype=torch.float32, device=device)
    total = numbers * (rank + 1)
    group.all_reduce(total)
    yield (total - numbers * (world_size * (world_size + 1) // 2)).abs().max().item()
    group.destroy_process_group()


def judge(backend: str, answers: list[Answer]) -> Finding:
    """Whether all ranks have the exact sum."""
    name, ranks = {"gloo": "Gloo", "nccl": "NCCL"}[backend], len(answers)
    for rank, answer in enumerate(answers):
        if answer.values != [0.0]:
            what = f"the sum is off by {answer.values[0]:g}" if answer.values else answer.lost
            return Finding(name, f"rank {rank} of {ranks}: {what}", "failed", CURES[backend])
    return Finding(name, f"the sum over {ranks} process{'' if ranks == 1 else 'es'} is exact")
