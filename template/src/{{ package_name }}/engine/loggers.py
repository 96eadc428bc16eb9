"""Loggers with defaults that work offline and never ask."""

import csv
import logging
import os
import secrets
import sys
from pathlib import Path
from typing import Any

from hydra.errors import InstantiationException
from lightning.pytorch.loggers import CSVLogger, Logger, MLFlowLogger, TensorBoardLogger, WandbLogger
from lightning.pytorch.utilities.rank_zero import rank_zero_only
from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # pyrefly: ignore[missing-module-attribute]

from .build import build
from .config import Config, flat
from .errors import UserError
from .logger_runs import keep_id, kept_id
from .wandb_login import wandb_login

log = logging.getLogger(__name__)


def make_loggers(configs: dict[str, Any]) -> list[Logger]:
    """Builds the chosen loggers.

    Raises:
        UserError: the library of one is not installed.
    """
    loggers: list[Logger] = []
    for name, config in configs.items():
        if not config:
            continue
        try:
            loggers.append(build(config, f"logger.{name}"))
        except InstantiationException as error:
            if isinstance(error.__cause__, ImportError):
                raise UserError(
                    f"logger={name} needs a library that is missing: pip install -c constraints.txt -e '.[{name}]'"
                ) from error
            raise
    return loggers


def log_run(loggers: list[Logger], config: Config, facts: dict[str, Any]) -> None:
    """Writes the resolved config and the run's facts (versions, commit, seed, devices) to every logger."""
    values = {**flat(config), **{f"run.{key}": value for key, value in flat(facts).items()}}
    for logger in loggers:
        # MLflow refuses other values than those that a run began with
        known = logger.experiment.get_run(logger.run_id).data.params if isinstance(logger, MLFlowLogger) else ()
        logger.log_hyperparams({key: value for key, value in values.items() if key not in known})


def finish(failed: bool) -> None:
    """Ends the W&B run of this process, if there is one; the next job would go on writing into it."""
    wandb = sys.modules.get("wandb")
    if wandb is not None and wandb.run is not None:
        wandb.finish(exit_code=int(failed))


def wandb_logger(save_dir: str, mode: str = "auto", **settings: Any) -> WandbLogger:
    """A W&B run in `save_dir`; mode `auto` is online where credentials are found and offline elsewhere.

    A run that goes on is the same one at W&B. Offline each part has a directory of its own, and `wandb sync` joins
    those of one id.
    """
    if mode == "auto":
        mode = os.environ.get("WANDB_MODE") or ("online" if wandb_login() else "offline")
    if mode not in ("online", "offline", "disabled"):
        raise UserError(f"logger.wandb.mode must be auto, online, offline or disabled (got {mode!r})")
    os.environ["WANDB_SILENT"] = "true"
    if _writes() and "id" not in settings:
        settings["id"] = kept_id(Path(save_dir), "wandb") or secrets.token_hex(4)
        keep_id(Path(save_dir), "wandb", settings["id"])
    return WandbLogger(save_dir=save_dir, mode=mode, resume="allow", **settings)


def csv_logger(save_dir: str, **settings: Any) -> CSVLogger:
    """Metrics in a CSV file; a run that goes on adds to it. Lightning's logger begins by deleting it."""
    logger = CSVLogger(save_dir, **settings)
    file = Path(logger.log_dir) / "metrics.csv"
    if _writes() and file.exists():
        kept = file.rename(file.with_name("metrics.kept.csv"))
        logger.experiment.metrics_keys = kept.read_text(encoding="utf-8").partition("\n")[0].split(",")
        kept.rename(file)
    return logger


def forget_steps(logger: Logger, first: int) -> None:
    """Takes what a logger holds of a step and all later ones out of it: a run that goes on will write them again."""
    if isinstance(logger, CSVLogger):
        _forget_rows(Path(logger.log_dir) / "metrics.csv", first)
    elif isinstance(logger, TensorBoardLogger) and first > 0:
        # TensorBoard drops what the files before this one hold from there on
        restart = SessionLog(status=SessionLog.START)
        logger.experiment.file_writer.add_event(Event(step=first, session_log=restart))


def add_missing_row(logger: Logger, step: int, metrics: dict[str, Any]) -> None:
    """Adds the metrics of a step to a CSV file that does not hold them."""
    if not isinstance(logger, CSVLogger) or not metrics:
        return
    file = Path(logger.log_dir) / "metrics.csv"
    if file.exists():
        with file.open(newline="", encoding="utf-8") as lines:
            rows = [row for row in csv.DictReader(lines) if row["step"] == str(step)]
        if any(all(row.get(name) for name in metrics) for row in rows):
            return
    logger.log_metrics(metrics, step)
    logger.save()


def _forget_rows(file: Path, first: int) -> None:
    if not file.exists():
        return
    beside = file.with_name("metrics.kept.csv")
    with file.open(newline="", encoding="utf-8") as lines, beside.open("w", newline="", encoding="utf-8") as kept:
        reader = csv.DictReader(lines)
        writer = csv.DictWriter(kept, reader.fieldnames or ())
        writer.writeheader()
        writer.writerows(row for row in reader if int(row["step"]) < first)
    beside.replace(file)


def _writes() -> bool:
    return rank_zero_only.rank == 0  # type: ignore[attr-defined]


def mlflow_logger(save_dir: str, experiment_name: str, tracking_uri: str | None = None) -> MLFlowLogger:
    """An MLflow run, in a database in `save_dir` unless a tracking server is named; a run that goes on is the same."""
    directory = Path(save_dir).absolute()
    artifacts = None if tracking_uri else (directory / "mlflow").as_uri()
    service = f"mlflow at {tracking_uri}" if tracking_uri else "mlflow"
    run_id = kept_id(directory, service) if _writes() else None
    logger = MLFlowLogger(
        experiment_name=experiment_name,
        tracking_uri=tracking_uri or f"sqlite:///{directory / 'mlflow.db'}",
        artifact_location=artifacts,
        run_name=directory.name,
        run_id=run_id,
    )
    if run_id is not None:
        logger.experiment.update_run(run_id, status="RUNNING")
    elif _writes() and (new_id := logger.run_id):
        keep_id(directory, service, new_id)
    return logger
