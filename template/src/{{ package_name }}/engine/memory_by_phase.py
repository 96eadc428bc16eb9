"""How much memory each phase of a training takes at most (`debug=memory`)."""

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from .phases import PhaseProfiler

PREFIX = "phase: "

log = logging.getLogger(__name__)


class MemoryByPhase(PhaseProfiler):
    """Has torch's profiler count every allocation of tensors, from the first step on."""

    def __init__(self, dirpath: str) -> None:
        super().__init__(dirpath)
        self.allocations: profile | None = None
        self.has_ended = False
        self.ranges: list[Any] = []

    def start(self, action_name: str) -> None:
        if self.allocations is None and action_name == "run_training_batch" and not self.has_ended:
            on_gpu = [ProfilerActivity.CUDA] if torch.cuda.is_initialized() else []
            self.allocations = profile(activities=[ProfilerActivity.CPU, *on_gpu], profile_memory=True)
            self.allocations.start()
        super().start(action_name)
        self.ranges.append(record_function(PREFIX + self.phases[-1]))
        self.ranges[-1].__enter__()

    def stop(self, action_name: str) -> None:
        self.ranges.pop().__exit__(None, None, None)
        super().stop(action_name)

    def describe(self) -> None:
        """Prints the peaks, the largest first."""
        if self.allocations is None:
            return
        allocations, self.allocations, self.has_ended = self.allocations, None, True
        allocations.stop()
        trace = Path(str(self.dirpath)) / f"memory-{self.local_rank}.json"
        allocations.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
        trace.unlink()
        if self.local_rank == 0:
            log.info("memory     peak of each phase, above the model and what else lay there before the first step")
            for phase, peak in peaks(events, on_gpu=torch.cuda.is_initialized()):
                log.info("%s", f"{phase:<10} {peak / 1e6:>12,.2f} MB")


def peaks(events: Iterable[dict[str, Any]], on_gpu: bool) -> list[tuple[str, int]]:
    """Phases and their peaks in bytes, the largest first, from the events of a trace.

    An allocation belongs to the phase that began last among those that have not ended.
    """
    device = 1 if on_gpu else 0
    moments: list[tuple[float, int, Any]] = []
    for event in events:
        name = str(event.get("name"))
        if name.startswith(PREFIX) and event.get("cat") == "user_annotation":
            phase = name.removeprefix(PREFIX)
            moments += [(event["ts"], 0, phase), (event["ts"] + event["dur"], 2, phase)]
        elif name == "[memory]" and event["args"]["Device Type"] == device:
            moments.append((event["ts"], 1, event["args"]))
    found: dict[str, int] = {}
    inside = ["loop"]
    level: int | None = None
    for _, kind, what in sorted(moments, key=lambda moment: moment[:2]):
        if kind == 0:
            inside.append(what)
        elif kind == 2:
            del inside[len(inside) - 1 - inside[::-1].index(what)]
        else:
            if level is None:
                level = what["Total Allocated"] - what["Bytes"]
            found[inside[-1]] = max(found.get(inside[-1], 0), what["Total Allocated"] - level)
    return sorted(found.items(), key=lambda item: item[1], reverse=True)
