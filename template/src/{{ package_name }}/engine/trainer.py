"""The Trainer of a run, from its config."""

from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import Checkpoint, LearningRateMonitor
from lightning.pytorch.callbacks import ProgressBar as LightningBar
from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from . import strategy
from .agreed_stop import AgreedStop
from .build import build, mistake
from .checkpoints import AtomicCheckpointIO, StoreConfig
from .config import Config
from .devices import TIMEOUT, Devices
from .fast_loop import SilentProfiler, skip_empty_hooks
from .finite_checkpoints import FiniteCheckpoints
from .header import Header
from .monitors import MonitorCheck
from .out_of_memory import MemoryReport
from .plateau import StepPlateau
from .preflight import Preflight
from .replicas import EqualBuffers
from .resume import ExactResume
from .skipped_steps import make_nonfinite
from .stage_metrics import LogStageMetrics
from .stop import StopRequest

DECIDED = ("accelerator", "devices", "num_nodes")  # read by `engine.devices`


def make_trainer(
    config: Config,
    devices: Devices,
    precision: str,
    loggers: list[Logger],
    request: StopRequest,
    sync_batchnorm: bool = False,
) -> Trainer:
    """Builds callbacks, strategy and Trainer. Every other key of `trainer` is an argument of Lightning's Trainer."""
    callbacks = [
        AgreedStop(request, config["strategy"].get("timeout", TIMEOUT)),
        Preflight(only_check=config.get("check", False), untrained=config["init_from"] is None),
        Header(config, devices, precision),
        EqualBuffers(),
        ExactResume(),
        LogStageMetrics(),
        MonitorCheck(),
        make_nonfinite(config["on_nonfinite"]),
        FiniteCheckpoints(),
        MemoryReport(config["paths"]["run"]),
        StepPlateau(),
        StoreConfig(config),
        *(
            callback
            for callback in _instances(config, "callbacks")
            if loggers or not isinstance(callback, LearningRateMonitor)  # which has nothing to do without a logger
        ),
        *_instances(config, "checkpoint"),
    ]
    skip_empty_hooks(callbacks)
    profiler = config.get("profiler")
    arguments = {key: value for key, value in config["trainer"].items() if key not in DECIDED}
    try:
        return Trainer(
            accelerator=devices.kind,
            devices=len(devices.indices) if devices.kind == "cpu" else list(devices.indices),
            num_nodes=devices.num_nodes,
            strategy=strategy.make_strategy(config["strategy"], devices, precision),
            sync_batchnorm=sync_batchnorm,
            use_distributed_sampler=False,  # the loaders share the samples, without padding
            precision=precision,  # type: ignore[arg-type]
            deterministic=config["seeding"]["deterministic"],
            logger=loggers or False,
            callbacks=callbacks,
            plugins=[AtomicCheckpointIO(), strategy.environment(devices)],
            profiler=build(profiler, "profiler") if profiler else SilentProfiler(),
            default_root_dir=config["paths"]["run"],
            enable_checkpointing=any(isinstance(callback, Checkpoint) for callback in callbacks),
            enable_progress_bar=any(isinstance(callback, LightningBar) for callback in callbacks),
            enable_model_summary=False,
            **arguments,
        )
    except (TypeError, ValueError, MisconfigurationException) as error:
        raise mistake("trainer", error) from error


def _instances(config: Config, group: str) -> list[Callback]:
    return [build(part, f"{group}.{name}") for name, part in config[group].items() if part]
