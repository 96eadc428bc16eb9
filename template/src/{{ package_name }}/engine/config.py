"""The composed config as plain data: resolved once, checked, the same for every process."""

import math
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .config_folder import cure_for_none
from .errors import UserError
from .resume_option import resumed_checkpoint
from .run_folders import find_checkpoint

if TYPE_CHECKING:
    from omegaconf import DictConfig

Config = dict[str, Any]

LARGEST_SEED = 2**32 - 1  # NumPy's limit
GROUPS = ("data", "model", "amp", "strategy", "seeding", "checkpoint", "callbacks", "logger", "trainer", "paths")
NULLABLE = ("global_batch_size", "max_epochs", "check_val_every_n_epoch", "log_every_n_steps")


def plain(config: "DictConfig") -> Config:
    """Draws a seed where none is given, resolves every interpolation and checks what needs no other library.

    Raises:
        UserError: a value that no run could work with.
    """
    from omegaconf import OmegaConf, open_dict  # `doctor` imports this module, and tells where a library is missing

    from . import resolvers  # noqa: F401

    seeding = config.get("seeding")
    if seeding is not None and seeding.get("seed") is None:
        with open_dict(config):
            seeding.seed = secrets.randbelow(LARGEST_SEED + 1)
    resolved = cast(Config, OmegaConf.to_container(config, resolve=True, throw_on_missing=True))
    _check(resolved)
    return resolved


def _check(config: Config) -> None:
    for group in GROUPS:
        if not isinstance(config.get(group), dict):
            raise UserError(f"{group} is left empty: {cure_for_none(group)}")
    seed = config["seeding"]["seed"]
    if not _is_whole(seed) or not 0 <= seed <= LARGEST_SEED:
        raise UserError(f"seeding.seed must be a whole number from 0 to {LARGEST_SEED} (got {seed!r})")
    for group, key, least in (
        ("data", "batch_size", 1),
        ("data", "global_batch_size", 1),
        ("trainer", "accumulate_grad_batches", 1),
        ("trainer", "num_nodes", 1),
        ("trainer", "max_epochs", -1),
        ("trainer", "max_steps", -1),
        ("trainer", "check_val_every_n_epoch", 1),
        ("trainer", "log_every_n_steps", 1),
        ("trainer", "num_sanity_val_steps", -1),
    ):
        value = config[group].get(key, least)
        if value is None and key in NULLABLE:
            continue
        if not _is_whole(value) or value < least:
            raise UserError(f"{group}.{key} must be a whole number from {least} (got {value!r})")
    if (scaling := config.get("optimizer_scaling")) is not None:
        rule, base = scaling.get("rule"), scaling.get("base_batch_size")
        if rule not in ("none", "sqrt", "linear"):
            raise UserError(f"optimizer_scaling.rule must be none, sqrt or linear (got {rule!r})")
        if not _is_whole(base) or base < 1:
            raise UserError(f"optimizer_scaling.base_batch_size must be a whole number from 1 (got {base!r})")
    timeout = config["strategy"].get("timeout", 1)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < math.inf:
        raise UserError(f"strategy.timeout must be a number of seconds above 0 (got {timeout!r})")
    workers = config["data"].get("num_workers", "auto")
    if workers != "auto" and (not _is_whole(workers) or workers < 0):
        raise UserError(f"data.num_workers must be auto or a whole number from 0 (got {workers!r})")
    prefetch = config["data"].get("prefetch_factor", "auto")
    if prefetch != "auto" and (not _is_whole(prefetch) or prefetch < 1):
        raise UserError(f"data.prefetch_factor must be auto or a whole number from 1 (got {prefetch!r})")
    clip = config["trainer"].get("gradient_clip_val")
    if clip is not None and (isinstance(clip, bool) or not isinstance(clip, (int, float)) or not 0 <= clip < math.inf):
        raise UserError(f"trainer.gradient_clip_val must be null or a number from 0 (got {clip!r})")
    if config["trainer"].get("limit_train_batches", 1.0) == 0:
        raise UserError(
            "trainer.limit_train_batches=0 leaves no training batches: type trainer.max_epochs=0 to test only"
        )
    for name, callback in config["callbacks"].items():
        patience = (callback or {}).get("patience", 0)
        if not _is_whole(patience) or patience < 0:
            raise UserError(
                f"callbacks.{name}.patience must be a whole number of validations from 0 (got {patience!r})"
            )
    check = config.setdefault("check", False)
    if not isinstance(check, bool):
        raise UserError(f"check must be true or false (got {check!r})")
    resume = config.setdefault("resume", None)
    if resume not in (None, "auto") and not Path(str(resume)).is_file():
        raise UserError(f"resume must be null, auto, latest, a run or a checkpoint file (got {resume!r})")
    monitor = config["model"].get("monitor", "val/loss")
    if not isinstance(monitor, str) or not monitor:
        raise UserError(f"model.monitor must be the name of a metric, such as val/loss (got {monitor!r})")
    schedule = config.setdefault("resume_schedule", None)
    if schedule not in (None, "stretch", "restart"):
        raise UserError(f"resume_schedule must be null, stretch or restart (got {schedule!r})")
    _check_init_from(config)
    mode = config["model"].get("mode", "min")
    if mode not in ("min", "max"):
        raise UserError(f"model.mode must be min or max (got {mode!r})")


def _check_init_from(config: Config) -> None:
    """Puts the checkpoint in the place of what names it, before this run could be what `latest` means."""
    start = config.setdefault("init_from", None)
    strict = config.setdefault("init_strict", True)
    if not isinstance(strict, bool):
        raise UserError(f"init_strict must be true or false (got {strict!r})")
    if start is None or resumed_checkpoint(Path(config["paths"]["run"]), config["resume"]) is not None:
        if start is not None and config["resume"] != "auto":
            raise UserError("resume goes on with a run and init_from begins a new one: leave one of them out")
        return
    config["init_from"] = str(find_checkpoint(str(start)).absolute())


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def flat(config: Config) -> dict[str, Any]:
    """Dotted keys, as loggers list them: `{"optimizer.lr": 0.001, …}`; lists stay whole."""
    pairs: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict) and value:
            pairs |= {f"{key}.{inner}": leaf for inner, leaf in flat(value).items()}
        else:
            pairs[key] = value
    return pairs
