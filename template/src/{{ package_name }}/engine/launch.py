"""Who runs a job: this process, one new process, one new process per device, or the ranks that others started."""

from pathlib import Path
from typing import TYPE_CHECKING

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode

from . import batch_size, devices, ranks
from .config import plain
from .run_record import claimed

if TYPE_CHECKING:
    from omegaconf import DictConfig


def launch(config: "DictConfig") -> dict[str, float]:
    """Resolves the config once and runs it on the devices that it asks for.

    Lightning would start the processes by running the command line again, and in a sweep each of them would then run
    a sweep of its own.
    """
    resolved = plain(config)
    trainer = resolved["trainer"]
    place = ranks.find_place()
    started = None if place is None else (place.local_world_size, place.world_size // place.local_world_size)
    chosen = devices.choose(trainer["accelerator"], trainer["devices"], trainer["num_nodes"], started)
    batch_size.apply(resolved, chosen.world_size)  # refuses here, before a process starts, what no rank could work with
    if place is not None:
        ranks.meet()
    with claimed(Path(resolved["paths"]["run"]), may_go_on=resolved["resume"] is not None):
        if place is not None:
            return ranks.lead(resolved, chosen)
        if chosen.world_size > 1:
            from . import worker_group

            return worker_group.run(resolved, chosen)
        if HydraConfig.get().mode is RunMode.MULTIRUN:
            from . import trial

            return trial.run(resolved, chosen)
        from . import job

        return job.run(resolved, chosen)
