"""Where the time of a step goes (`debug=profile`)."""

import logging
import math
import time
from collections import defaultdict
from collections.abc import Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from .path_options import short
from .phases import WARM_UP, PhaseProfiler

MOST = 10  # operations in the table
MEASURED = 20  # steps that say enough
SHOWN = ("data", "forward", "backward", "optimizer", "callbacks", "loop")
TOO_SHORT = "no step was measured: the first %d are left out, and there were %d; type trainer.max_epochs=%d"

log = logging.getLogger(__name__)


class StepProfile(PhaseProfiler):
    """Measures phases by the clock and operations by torch's profiler, from the fourth step on.

    At a phase's end it waits for the device, whose work would otherwise count for whichever phase reads a result.
    `profile.json` in the run directory is a trace of all that happened.
    """

    def __init__(self, dirpath: str) -> None:
        super().__init__(dirpath)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.since = time.perf_counter()
        self.operations: profile | None = None

    def ended(self, phase: str) -> None:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        now = time.perf_counter()
        self.seconds[phase] += now - self.since
        self.since = now

    def warmed_up(self) -> None:
        on_gpu = [ProfilerActivity.CUDA] if torch.cuda.is_initialized() else []
        self.operations = profile(activities=[ProfilerActivity.CPU, *on_gpu])
        self.operations.start()
        self.seconds.clear()
        self.since = time.perf_counter()

    def describe(self) -> None:
        """Prints the shares of the phases and the most expensive operations; writes the trace."""
        operations, self.operations = self.operations, None
        steps, self.steps = self.steps, 0  # a test that follows has none
        if operations is not None:
            operations.stop()
        if operations is None or steps <= WARM_UP:
            if steps and self.local_rank == 0:
                epochs = math.ceil((WARM_UP + MEASURED) / steps)
                log.warning(TOO_SHORT, WARM_UP, steps, epochs)
            return
        trace = Path(str(self.dirpath)) / f"profile{self.local_rank or ''}.json"
        operations.export_chrome_trace(str(trace))
        if self.local_rank == 0:
            lines = [*phase_lines(self.seconds, steps - WARM_UP), ""]
            lines += operation_lines(operations.key_averages(), torch.cuda.is_initialized())
            for line in lines:
                log.info("%s", line)
            log.info("trace      %s, for ui.perfetto.dev or chrome://tracing", short(trace))


def phase_lines(seconds: Mapping[str, float], steps: int) -> list[str]:
    """What a step of the training takes and how its phases share that; what lies between epochs is left out."""
    times = [seconds.get(phase, 0.0) for phase in SHOWN]
    total = sum(times)
    ends = [0, *(round(100 * end / total) for end in accumulate(times))]  # so that the shares sum to 100
    shares = "  ".join(f"{phase} {end - begin} %" for phase, (begin, end) in zip(SHOWN, pairwise(ends), strict=True))
    return [f"profile    {steps} steps of {1000 * total / steps:.2f} ms", f"share      {shares}"]


def operation_lines(events: Any, on_gpu: bool) -> list[str]:
    """A table of the operations that took most time themselves, on the GPU where there is one."""

    def own_time(event: Any) -> float:
        return float(event.self_device_time_total if on_gpu else event.self_cpu_time_total)

    operations = [event for event in events if not event.is_user_annotation]
    total = sum(map(own_time, operations)) or 1.0
    rows = [("operation", "calls", "own time", "share")]
    for event in sorted(operations, key=own_time, reverse=True)[:MOST]:
        share = f"{100 * own_time(event) / total:.0f} %"
        rows.append((str(event.key)[:60], f"{event.count:,}", f"{own_time(event) / 1000:,.1f} ms", share))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:>{width}}" if place else f"{cell:<{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
