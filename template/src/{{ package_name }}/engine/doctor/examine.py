"""Everything that the doctor looks at, what is quickly known first."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..stop import listening
from . import all_reduce, arithmetic, machine, torch_build, versions
from .bounded import Answer, Task, answers
from .finding import Finding, attempt


def examine(folder: Path) -> Iterator[Finding]:
    """Looks at this machine and at `folder`, where runs are written."""
    with listening():
        yield from attempt("packages", versions.check)
        facts = _torch_facts()
        yield from attempt("torch", torch_build.judge, facts, torch_build.driver())
        gpus = facts.values[0]["gpus"] if facts.values else 0
        yield from machine.check(folder, max(1, gpus))
        if facts.values:
            yield from _compute(gpus)


def _compute(gpus: int) -> Iterator[Finding]:
    with tempfile.TemporaryDirectory() as meeting:
        gloo = all_reduce.tasks("gloo", 2, f"{meeting}/gloo", seconds=30)
        nccl = all_reduce.tasks("nccl", gpus, f"{meeting}/nccl", seconds=60)
        found = [*answers([*gloo, *nccl, Task(arithmetic.compute, ("cpu",))])]
    yield all_reduce.judge("gloo", found[: len(gloo)])
    if nccl:
        yield all_reduce.judge("nccl", found[len(gloo) : -1])
    yield from arithmetic.judge("cpu", found[-1])
    devices = [f"cuda:{index}" for index in range(gpus)]  # after NCCL: some clusters let one process use a GPU
    for device, answer in zip(
        devices, answers([Task(arithmetic.compute, (device,)) for device in devices]), strict=True
    ):
        yield from arithmetic.judge(device, answer)


def _torch_facts() -> Answer:
    try:
        [answer] = answers([Task(torch_build.facts)])
    except (EOFError, ConnectionError):
        return Answer([], "it ends the process that imports it, or takes minutes")
    return answer
