"""Trials that run side by side on one machine: a GPU for each, and the cores shared."""

import fcntl
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from .. import devices

POLL_SECONDS = 0.5


@contextmanager
def one_of_its_own(config: DictConfig, sweep: Path) -> Generator[None]:
    """Gives a trial on one device a GPU that no other trial of the sweep uses, where the machine has several.

    The system gives it back when the process ends, however it ends.
    """
    there = devices.choose(config.trainer.accelerator, "auto")
    if there.kind != "cuda" or len(there.indices) < 2 or config.trainer.devices != 1:
        yield
        return
    folder = sweep / ".gpus"
    folder.mkdir(exist_ok=True)
    while True:
        for index in there.indices:
            with (folder / str(index)).open("w") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                config.trainer.devices = [index]
                yield
                return
        time.sleep(POLL_SECONDS)


def gpus_of_a_trial(accelerator: str, wanted: int | str | list[int]) -> int:
    """What Ray is to reserve for a trial: as many GPUs as it trains on, none where this machine has none."""
    chosen = devices.choose(accelerator, wanted)
    return len(chosen.indices) if chosen.kind == "cuda" else 0


OmegaConf.register_new_resolver("gpus_of_a_trial", gpus_of_a_trial, replace=True)
