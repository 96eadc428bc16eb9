"""Everything that the doctor looks at, what is quickly known first."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..stop import listening
from . import all_reduce, arithmetic, machine, torch_build, versions
from .bounded import Answer, Task, answers
from .finding import INSTALL, Finding, attempt


def examine(folder: Path) -> Iterator[Finding]:
    """Looks at this machine and at `folder`, where runs are written."""
    with listening(), tempfile.TemporaryDirectory() as meeting:
        yield from attempt("packages", versions.check)
        build = _torch_facts()
        if build.lost:
            cure = f"{INSTALL}, or {torch_build.SELECTOR}"
            yield Finding("torch", f"cannot be imported: {build.lost}", "failed", cure)
            yield from attempt("machine", machine.check, folder, 1)
            return
        gpus = len(build.values[0]["gpus"])
        yield from attempt("torch", torch_build.judge, build.values[0], torch_build.driver())
        yield from attempt("machine", machine.check, folder, max(1, gpus))
        devices = ["cpu", *(f"cuda:{index}" for index in range(gpus))]
        gloo = all_reduce.tasks("gloo", 2, f"{meeting}/gloo", seconds=30)
        nccl = all_reduce.tasks("nccl", gpus, f"{meeting}/nccl", seconds=60)
        found = answers([*gloo, *nccl, *(Task(arithmetic.compute, (device,)) for device in devices)])
        yield all_reduce.judge("gloo", [next(found) for _ in gloo])
        if nccl:
            yield all_reduce.judge("nccl", [next(found) for _ in nccl])
        for device, answer in zip(devices, found, strict=True):
            yield from arithmetic.judge(device, answer)


def _torch_facts() -> Answer:
    try:
        [answer] = answers([Task(torch_build.facts)])
    except (EOFError, ConnectionError):
        return Answer([], "it ends the process that imports it, or takes minutes")
    return answer
