"""What the finders have in common: a training of a few steps on one device, which leaves nothing behind."""

import logging
import shlex
from collections.abc import Generator, Iterable
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lightning.pytorch as lightning
from lightning.pytorch import Trainer
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from lightning.pytorch.utilities.seed import isolate_rng
from omegaconf import DictConfig

from . import batch_size, init_from, logs, network, out_of_memory, strategy
from .build import build, mistake
from .config import Config, plain
from .config_folder import SCRIPT, TRAINS, config_file, keys
from .data_module import DataModule
from .devices import Devices, choose
from .errors import UserError
from .fast_loop import SilentProfiler
from .header import device_name
from .module import TrainingModule
from .precision import choose_precision
from .trainer import DECIDED

NEVER = 10**9  # epochs

log = logging.getLogger(__name__)


@dataclass
class Rehearsal:
    """The parts of a training, with nothing that watches or records it.

    Attributes:
        config: As it was composed.
        facts: Batch sizes and learning rates that the training would have, from `engine.batch_size`.
        devices: Those of the training.
        device: The first of them, which is used.
        precision: Lightning's name of it.
        folder: For temporary files.
        data, module: Built as for the training, without a learning-rate schedule.
    """

    config: Config
    facts: dict[str, Any]
    devices: Devices
    device: Devices
    precision: str
    folder: str
    data: DataModule
    module: TrainingModule

    @property
    def accumulate(self) -> int:
        """Batches of an optimizer step on all devices, which the one device has to itself."""
        return int(self.config["trainer"].get("accumulate_grad_batches", 1)) * self.devices.world_size

    def trainer(self, **arguments: Any) -> Trainer:
        """A Trainer with the config's arguments but for what ends, validates or records a training."""
        given = {key: value for key, value in self.config["trainer"].items() if key not in DECIDED}
        decided: dict[str, Any] = {
            "accelerator": self.device.kind,
            "devices": 1 if self.device.kind == "cpu" else list(self.device.indices),
            "strategy": strategy.make_strategy(self.config["strategy"], self.device, self.precision),
            "use_distributed_sampler": False,
            "precision": self.precision,
            "deterministic": self.config["seeding"]["deterministic"],
            "plugins": [strategy.environment(self.device)],
            "profiler": SilentProfiler(),
            "default_root_dir": self.folder,
            "accumulate_grad_batches": self.accumulate,
            "max_epochs": -1,  # an epoch may be shorter than what is needed
            **dict.fromkeys(("min_epochs", "min_steps", "max_time", "val_check_interval")),
            "check_val_every_n_epoch": NEVER,
            "num_sanity_val_steps": 0,
            "fast_dev_run": False,
            "detect_anomaly": False,
            **dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False),
        }
        try:
            return Trainer(**{**given, **decided, **arguments})
        except (TypeError, ValueError, MisconfigurationException) as error:
            raise mistake("trainer", error) from error


@contextmanager
def rehearsal(composed: DictConfig, command: str) -> Generator[Rehearsal]:
    """Builds the parts of the training that `train` would begin; explains what Lightning or the memory object to.

    Raises:
        UserError: a training that could not begin, or one whose network does not lie whole on one device.
        RunFailed: the memory ran out.
    """
    logs.configure(directory=None)
    if composed.get("resume") is not None:
        raise UserError(f"{command} begins a training of its own: leave resume out")
    config = plain(composed)
    here = choose(config["trainer"]["accelerator"], config["trainer"]["devices"])
    devices = replace(here, num_nodes=config["trainer"]["num_nodes"])
    device = replace(here, indices=here.indices[:1])
    _refuse_sharding(config, devices, command)
    applied, facts = batch_size.apply(config, devices.world_size)
    precision = choose_precision(config["amp"]["precision"], device.kind)
    is_one_of = f", the first of {devices.world_size}" if devices.world_size > 1 else ""
    log.info("device     %s%s", device_name(device), is_one_of)
    log.info("precision  %s", precision)
    with closing(ExitStack()) as random_state, TemporaryDirectory(prefix=f"{command}-") as folder:
        random_state.enter_context(isolate_rng())  # which by itself restores nothing after an error
        config["paths"]["run"] = folder
        parts = _build(applied)
        try:
            yield Rehearsal(config, facts, devices, device, precision, folder, *parts)
        except MisconfigurationException as error:
            raise mistake("Lightning", error) from error
        except SystemExit as error:  # what Lightning makes of Ctrl-C
            raise KeyboardInterrupt from error
        except Exception as error:
            if out_of_memory.is_out_of_memory(error):
                raise out_of_memory.explain(error, config, devices) from error
            raise


def _refuse_sharding(config: Config, devices: Devices, command: str) -> None:
    chosen = config["strategy"]
    if devices.world_size > 1 and ("_target_" in chosen or chosen["name"] == "fsdp"):
        name = chosen.get("_target_", "fsdp")
        nodes = " trainer.num_nodes=1" if devices.num_nodes > 1 else ""
        raise UserError(
            f"{command} runs on one device, and strategy {name} shares the network among {devices.world_size}: "
            f"type trainer.devices=1{nodes}"
        )


def _build(config: Config) -> tuple[DataModule, TrainingModule]:
    """As `engine.job` does, but without a schedule, which would need the length of the training."""
    seed = config["seeding"]["seed"]
    lightning.seed_everything(seed, verbose=False)
    data: DataModule = build(config["data"], "data")
    unscheduled: Config = {"scheduler": None} if "scheduler" in config["model"] else {}
    module: TrainingModule = build({**config["model"], **unscheduled}, "model")
    network.prepare(module)
    if config["init_from"] is not None:
        init_from.load_weights(module, Path(config["init_from"]), config["init_strict"])
    lightning.seed_everything(seed, verbose=False)
    return data, module


def training_line(command: str, found: str, words: Iterable[str]) -> str:
    """The line that trains with what was found, and with the words that the finder was given for the training."""
    config = config_file(command)
    own = {key.partition("=")[0] for key in keys(config)} if config else set()
    replaced = {*own, found.partition("=")[0].lstrip("+")}
    rest = [word for word in words if word.partition("=")[0].lstrip("+~") not in replaced]
    return shlex.join([SCRIPT, TRAINS, found, *rest])
