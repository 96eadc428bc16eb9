"""One run, from the resolved config to the tested checkpoint."""

import logging
import os
import shlex
from pathlib import Path

import lightning.pytorch as lightning
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.utilities.exceptions import MisconfigurationException, SIGTERMException
from lightning.pytorch.utilities.rank_zero import rank_zero_only

from . import batch_size, init_from, loggers, logs, network, out_of_memory, resume_schedule
from .build import build, mistake
from .checkpoints import tidy
from .config import Config
from .data_module import DataModule
from .devices import Devices
from .errors import RunFailed, UserError
from .fast_loop import skip_empty_hooks
from .header import metrics_table
from .history import keep_history
from .module import TrainingModule
from .normalisation import KeepNormalisation
from .path_options import short
from .precision import choose_precision
from .preflight import Checked
from .provenance import provenance
from .replicas import unused_parameters
from .resume_option import resumed_checkpoint
from .run_progress import RecordProgress, best_checkpoint, best_facts
from .run_record import RunRecord
from .runs import misfit
from .skipped_steps import skipped_steps
from .stop import Interrupted, StopRequest, listening
from .strategy import wants_sync_batchnorm
from .trainer import make_trainer

RANK_STRIDE = 1_000_003  # a prime keeps the ranks of one seed apart from those of the next

log = logging.getLogger(__name__)


def run(config: Config, devices: Devices) -> dict[str, float]:
    """Trains and tests; returns the last value of every metric and, under `best_score`, the monitored one's best.

    Runs once in every process of the job. The run directory gets the log, the record and the checkpoints.
    """
    directory = Path(config["paths"]["run"])
    directory.mkdir(parents=True, exist_ok=True)
    rank = int(os.environ.get("RANK", 0)) if devices.world_size > 1 else 0
    # Lightning has guessed it from variables, perhaps before this process was forked
    rank_zero_only.rank = rank  # type: ignore[attr-defined]
    logs.configure(directory, rank)
    facts = {"name": config["name"], "seed": config["seeding"]["seed"], **provenance()}
    with RunRecord(directory, rank, **facts) as record, listening() as request:
        succeeded = False
        try:
            metrics = _train(config, devices, rank, record, request)
            succeeded = True
        except Interrupted as interrupted:
            log.info("interrupted by %s", interrupted)
            raise
        except BaseException as error:
            log.exception("the run ended early", extra=logs.FILE_ONLY)  # the console shows it when the process ends
            if out_of_memory.is_out_of_memory(error):
                raise out_of_memory.explain(error, config, devices) from error
            raise
        finally:
            loggers.finish(failed=not succeeded)
    return metrics


def _train(config: Config, devices: Devices, rank: int, record: RunRecord, request: StopRequest) -> dict[str, float]:
    seed = config["seeding"]["seed"]
    lightning.seed_everything(seed, verbose=False)
    precision = choose_precision(config["amp"]["precision"], devices.kind)
    resolved = {"device": devices.kind, "devices": list(devices.indices), "precision": precision}
    applied, sizes = batch_size.apply(config, devices.world_size)
    record.update(**resolved, world_size=devices.world_size, threads=torch.get_num_threads(), **sizes)

    data: DataModule = build(applied["data"], "data")
    data.run_directory = Path(config["paths"]["run"])
    module: TrainingModule = build(applied["model"], "model")
    network.prepare(module)
    if rank == 0:
        tidy(Path(config["paths"]["run"]) / "checkpoints")
    checkpoint = resumed_checkpoint(Path(config["paths"]["run"]), config["resume"])
    if config["init_from"] is not None and checkpoint is None:
        init_from.load_weights(module, Path(config["init_from"]), config["init_strict"])
        record.update(init_from=config["init_from"])
    # the same first weights on every rank, but other dropout and augmentation
    lightning.seed_everything((seed + RANK_STRIDE * rank) % 2**32, verbose=False)

    run_loggers = loggers.make_loggers(config["logger"])
    if only_check := config.get("check", False):
        run_loggers.clear()  # built, and left alone: nobody wants the curves of a check
    sync_batchnorm = wants_sync_batchnorm(config["strategy"], devices, module)
    trainer = make_trainer(config, devices, precision, run_loggers, request, sync_batchnorm)
    schedule = resume_schedule.resumed_schedule(config, checkpoint)
    normalisation = KeepNormalisation(record)
    trainer.callbacks.extend([schedule, normalisation, RecordProgress(record)])  # type: ignore[attr-defined]
    skip_empty_hooks([normalisation, *keep_history(trainer, Path(config["paths"]["run"]), record.began)])
    if trainer.is_global_zero:
        loggers.log_run(run_loggers, config, record.facts)

    if checkpoint is not None:
        log.info("going on from %s", short(checkpoint))
    try:
        trainer.fit(module, data, ckpt_path=checkpoint)
    except Checked as checked:
        log.info("checked    the first batch %s", checked)
    except SIGTERMException as error:
        saved = ", with a checkpoint" if trainer.checkpoint_callbacks else ""
        log.info("stopped after step %d%s", trainer.global_step, saved)
        raise Interrupted(request.signum, agreed=True) from error
    except MisconfigurationException as error:
        raise mistake("Lightning", error) from error
    except RuntimeError as error:
        if isinstance(error.__context__, (Interrupted, RunFailed, UserError)):
            raise error.__context__ from None  # Lightning's clearing away may fail in turn
        if checkpoint is not None and str(error).startswith("Error(s) in loading state_dict"):
            raise misfit(checkpoint, error) from error
        if (unused := unused_parameters(error, module)) is None:
            raise
        raise unused from error
    finally:
        # also of a training that was cut short: torch's profiler crashes a process that ends while it runs
        trainer.profiler.describe()  # type: ignore[attr-defined]
        if trainer.global_step > schedule.resumes_at:
            record.facts |= _progress(trainer)
    if request.signum:
        raise Interrupted(request.signum)
    if only_check:
        log.info("check=true: nothing stands in the way; leave it out to train")
        return {}
    if trainer.global_step == schedule.resumes_at:
        log.info("no step was left to train: max_epochs=%s, max_steps=%s", trainer.max_epochs, trainer.max_steps)
    record.update(**_progress(trainer))
    metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
    _say_why_it_stopped(trainer)
    best = best_checkpoint(trainer)
    if best is not None:
        metrics["best_score"] = float(best.best_model_score)  # type: ignore[arg-type]
        record.update(**best_facts(best))
    if config["test"]:
        metrics |= _test(trainer, module, data, best)
    record.update(metrics=metrics)
    if best is not None and rank == 0:
        words = shlex.join(["evaluate", f"run={short(config['paths']['run'])}"])
        log.info("\nevaluate   %s %s", config["project"], words)
    return metrics


def _progress(trainer: Trainer) -> dict[str, int]:
    return {"epochs": trainer.current_epoch, "steps": trainer.global_step, **skipped_steps(trainer)}


def _test(trainer: Trainer, module: TrainingModule, data: DataModule, best: ModelCheckpoint | None) -> dict[str, float]:
    [tested] = trainer.test(module, data, ckpt_path=best.best_model_path if best else None, verbose=False)
    log.info("\ntest of the %s\n%s", "best checkpoint" if best else "last weights", metrics_table(tested))
    return dict(tested)


def _say_why_it_stopped(trainer: Trainer) -> None:
    for callback in trainer.early_stopping_callbacks:
        if isinstance(callback, EarlyStopping) and callback.stopped_epoch:
            log.info("stopped early: %s has not improved in %d validations", callback.monitor, callback.patience)
