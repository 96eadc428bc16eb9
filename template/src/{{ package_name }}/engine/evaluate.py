"""Evaluating a checkpoint with none of the overrides that made it."""

import logging
from typing import Any

from lightning.pytorch import Trainer

from . import logs, strategy
from .devices import choose
from .errors import UserError
from .fast_loop import SilentProfiler
from .header import device_name, metrics_table
from .path_options import short
from .precision import choose_precision
from .runs import Run, load_run
from .stage_metrics import LogStageMetrics

log = logging.getLogger(__name__)


def evaluate(config: dict[str, Any]) -> dict[str, float]:
    """Rebuilds model and data of `checkpoint` or `run` and measures the split; returns the metrics."""
    logs.configure(directory=None)
    if config["split"] not in ("test", "val"):
        raise UserError(f"split must be test or val (got {config['split']!r})")
    run = load_run(config["checkpoint"] or config["run"], config["trusted_targets"])
    if config["batch_size"] is not None:
        if not isinstance(config["batch_size"], int) or config["batch_size"] < 1:
            raise UserError(f"batch_size must be a whole number from 1 (got {config['batch_size']!r})")
        run.data.batch_size = config["batch_size"]
    metrics = _measure(run, config["split"], config["accelerator"])
    log.info("\n%s", metrics_table(metrics))
    return metrics


def _measure(run: Run, split: str, accelerator: str) -> dict[str, float]:
    devices = choose(accelerator, 1)
    precision = choose_precision(run.config["amp"]["precision"], devices.kind)
    log.info("checkpoint %s\ndevice     %s\nprecision  %s", short(run.checkpoint), device_name(devices), precision)
    trainer = Trainer(
        accelerator=devices.kind,
        devices=1,
        precision=precision,  # type: ignore[arg-type]
        deterministic=run.config["seeding"]["deterministic"],
        callbacks=[LogStageMetrics()],
        plugins=[strategy.environment(devices)],
        profiler=SilentProfiler(),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    measure = trainer.test if split == "test" else trainer.validate
    [metrics] = measure(run.module, run.data, verbose=False)
    return dict(metrics)
