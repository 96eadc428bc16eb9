"""Loggers with defaults that work offline and never ask."""

import csv
import logging
import netrc
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hydra.errors import InstantiationException
from lightning.pytorch.loggers import CSVLogger, Logger, MLFlowLogger, WandbLogger
from lightning.pytorch.utilities.rank_zero import rank_zero_only

from .build import build
from .config import Config, flat
from .errors import UserError

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
        logger.log_hyperparams(values)


def finish(failed: bool) -> None:
    """Ends the W&B run of this process, if there is one; the next job would go on writing into it."""
    wandb = sys.modules.get("wandb")
    if wandb is not None and wandb.run is not None:
        wandb.finish(exit_code=int(failed))


def wandb_logger(save_dir: str, mode: str = "auto", **settings: Any) -> WandbLogger:
    """A W&B run in `save_dir`; mode `auto` is online where credentials are found and offline elsewhere."""
    if mode == "auto":
        mode = os.environ.get("WANDB_MODE") or ("online" if _has_wandb_credentials() else "offline")
    if mode not in ("online", "offline", "disabled"):
        raise UserError(f"logger.wandb.mode must be auto, online, offline or disabled (got {mode!r})")
    os.environ["WANDB_SILENT"] = "true"
    return WandbLogger(save_dir=save_dir, mode=mode, **settings)


def csv_logger(save_dir: str, **settings: Any) -> CSVLogger:
    """Metrics in a CSV file; a run that goes on adds to it. Lightning's logger begins by deleting it."""
    logger = CSVLogger(save_dir, **settings)
    file = Path(logger.log_dir) / "metrics.csv"
    if rank_zero_only.rank == 0 and file.exists():  # type: ignore[attr-defined]
        kept = file.rename(file.with_name("metrics.kept.csv"))
        logger.experiment.metrics_keys = kept.read_text(encoding="utf-8").partition("\n")[0].split(",")
        kept.rename(file)
    return logger


def forget_steps(logger: CSVLogger, first: int) -> None:
    """Takes the rows of a step and all later ones out of the file: a run that goes on will write them again."""
    file = Path(logger.log_dir) / "metrics.csv"
    if not file.exists():
        return
    beside = file.with_name("metrics.kept.csv")
    with file.open(newline="", encoding="utf-8") as lines, beside.open("w", newline="", encoding="utf-8") as kept:
        reader = csv.DictReader(lines)
        writer = csv.DictWriter(kept, reader.fieldnames or ())
        writer.writeheader()
        writer.writerows(row for row in reader if int(row["step"]) < first)
    beside.replace(file)


def _has_wandb_credentials() -> bool:
    if os.environ.get("WANDB_API_KEY"):
        return True
    host = urlsplit(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    path = Path(os.environ.get("NETRC", Path.home() / ".netrc"))
    try:
        return netrc.netrc(path).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False


def mlflow_logger(save_dir: str, experiment_name: str, tracking_uri: str | None = None) -> MLFlowLogger:
    """An MLflow run, in a database in `save_dir` unless a tracking server is named."""
    directory = Path(save_dir).absolute()
    artifacts = None if tracking_uri else (directory / "mlflow").as_uri()
    return MLFlowLogger(
        experiment_name=experiment_name,
        tracking_uri=tracking_uri or f"sqlite:///{directory / 'mlflow.db'}",
        artifact_location=artifacts,
        run_name=directory.name,
    )
