"""What a loop written by hand on torch's DistributedDataParallel reaches with the same network and batch.

    python -m benchmarks.plain_ddp PROCESSES SAMPLES

Prints samples a second over all processes, each with one thread.
"""

from __future__ import annotations

import sys
import tempfile
import time

import torch
from torch import distributed, multiprocessing, nn

from benchmarks import WARMUP

STEPS = 32


def main(rank: int, processes: int, samples: int, store: str) -> None:
    from cell_counter.models.resnet import ResNet

    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=processes)
    net = ResNet(channels=1, num_classes=10, width=64, norm="group")
    model = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True) if processes > 1 else net
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    images, labels = torch.randn(samples, 1, 8, 8), torch.randint(10, (samples,))
    began = 0.0
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            began = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    if rank == 0:
        sys.stdout.write(f"{samples * processes * STEPS / (time.perf_counter() - began)}\n")
    distributed.barrier()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        processes, samples = int(sys.argv[1]), int(sys.argv[2])
        multiprocessing.spawn(main, (processes, samples, f"{directory}/store"), processes)
