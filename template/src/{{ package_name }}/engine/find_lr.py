"""Finds a learning rate by a range test (Smith 2017)."""

import functools
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from lightning.pytorch.tuner import Tuner
from omegaconf import DictConfig

from .errors import JobFailed, UserError
from .finder import Rehearsal, rehearsal, training_line
from .learning_rate_curve import Curve, draw, fit_curve
from .module import TrainingModule
from .path_options import short

COMMAND = "find_lr"
FEWEST_STEPS = 50
LEAST_RATIO = 10  # of the largest rate to the smallest
FIRST = 10  # steps that tell how large losses are before they explode
EXPLODED = 10  # times as large
NOTHING = "the first batch has no finite loss (`preview` shows the batch)"

log = logging.getLogger(__name__)


def find_lr(composed: DictConfig, words: Iterable[str]) -> float:
    """Draws `learning_rate.png` and prints the line that trains with the suggested rate; returns the rate.

    Args:
        composed: What `configs/find_lr.yaml` composes.
        words: The command line that it was composed from.

    Raises:
        UserError: a training or a range that cannot be tested.
        JobFailed: no rate can be suggested.
    """
    low, high, steps = _range(composed)
    file = Path(str(composed["output"])) / "learning_rate.png"
    if file.parent.exists() and not file.parent.is_dir():
        raise UserError(f"output={file.parent} is a file: name a folder")
    with rehearsal(composed, COMMAND) as training:
        log.info("batch      %s samples a step", training.facts["global_batch_size"])
        means = _range_test(training, low, high, steps)
        optimizer = training.config["model"].get("optimizer")
        factor = training.facts.get("learning_rate", {"factor": 1.0})["factor"]
    losses = {rate: loss for rate, loss in means.items() if math.isfinite(loss)}
    curve = fit_curve(list(losses), list(losses.values())) if len(losses) > FIRST else None
    suggestion = curve.suggestion if curve is not None else None
    if curve is not None:
        _save(curve, file)
    if curve is None and _becomes_nan(list(means.values())):
        raise JobFailed(
            f"no learning rate to suggest: the loss is NaN after {len(losses)} steps; `train debug=anomaly` names the "
            f"operation that gives a NaN, and if it finds none, try min_lr={low / 1000:g}"
        )
    if curve is None or suggestion is None:
        raise JobFailed("no learning rate to suggest: " + (_why_none(curve, low, high, steps) if losses else NOTHING))
    log.info("suggested  %.3g, where the loss falls fastest", suggestion)
    if factor != 1:
        log.info("lr         %.3g × %.4g of optimizer_scaling are %.3g", suggestion / factor, factor, suggestion)
    if curve.best == len(curve.rates) - 1:
        log.info("the loss still falls at the largest rate: max_lr=%g looks further", high * 10)
    if optimizer is None:
        log.info("no option sets it: give it to the module's own configure_optimizers")
    else:
        lr_key = "optimizer.lr" if "lr" in optimizer else "+optimizer.lr"
        log.info("\n%s", training_line(COMMAND, f"{lr_key}={suggestion / factor:.3g}", words))
    return suggestion


def _range(config: DictConfig) -> tuple[float, float, int]:
    low, high, steps = config["min_lr"], config["max_lr"], config["steps"]
    for key, rate in (("min_lr", low), ("max_lr", high)):
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate < math.inf:
            raise UserError(f"{key} must be a number above 0 (got {rate!r})")
    if high < LEAST_RATIO * low:
        raise UserError(f"max_lr must be at least {LEAST_RATIO} times min_lr={low:g} (got {high:g})")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < FEWEST_STEPS:
        raise UserError(f"steps must be a whole number from {FEWEST_STEPS} (got {steps!r})")
    return low, high, steps


def _range_test(training: Rehearsal, low: float, high: float, steps: int) -> dict[float, float]:
    """The loss of each step by its learning rate, until it explodes or is NaN."""
    losses: dict[float, list[float]] = {}
    trainer = training.trainer(max_steps=steps)

    def rate_of(step: int) -> float:
        return low * (high / low) ** ((step + 1) / steps if step else 0)  # Lightning (2.6.6) leaves out the second rate

    _record(training.module, losses, rate_of)
    Tuner(trainer).lr_find(
        training.module,
        datamodule=training.data,
        min_lr=low,
        max_lr=high,
        num_training=steps,
        early_stop_threshold=None,  # it takes any negative loss for an explosion
        update_attr=False,
    )
    return {rate: fmean(values) for rate, values in losses.items()}


def _record(module: TrainingModule, losses: dict[float, list[float]], rate_of: Callable[[int], float]) -> None:
    """Keeps what Lightning does not: the losses as they are, of every accumulated batch.

    From then on, a step with another rate than `rate_of` raises UserError.
    """
    training_step = module.training_step

    @functools.wraps(training_step)
    def record(*batch: Any, **more: Any) -> Any:
        rate = float(module.trainer.optimizers[0].param_groups[0]["lr"])
        if not math.isclose(rate, wanted := rate_of(step := module.trainer.global_step), rel_tol=1e-6):
            raise UserError(
                f"{type(module).__name__} sets the learning rate itself, or optimizes by hand: leave that out for "
                f"{COMMAND} (step {step + 1} has {rate:.3g} instead of {wanted:.3g})"
            )
        outcome = training_step(*batch, **more)
        loss = outcome["loss"] if isinstance(outcome, Mapping) else outcome
        if loss is not None:
            losses.setdefault(rate, []).append(loss.item())
            module.trainer.should_stop |= _exploded(list(losses.values()))
        return outcome

    module.__dict__["training_step"] = record


def _exploded(losses: list[list[float]]) -> bool:
    usual = max(abs(loss) for values in losses[:FIRST] for loss in values)
    return not losses[-1][-1] <= EXPLODED * usual  # nor NaN


def _becomes_nan(losses: list[float]) -> bool:
    """Whether a loss is NaN although those before it are of the size of the first."""
    before = losses[:-1]
    return bool(before) and math.isnan(losses[-1]) and all(abs(loss) <= EXPLODED * abs(before[0]) for loss in before)


def _save(curve: Curve, file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draw(curve).savefig(file)
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror}") from error
    log.info("picture    %s", short(file))


def _why_none(curve: Curve | None, low: float, high: float, steps: int) -> str:
    if curve is None or curve.explodes < steps / 4:
        return f"the loss only rises from min_lr={low:g} on, try min_lr={low / 1000:g}"
    if curve.falls:
        return f"the loss falls fastest at the largest rate, try max_lr={high * 100:g}"
    larger = f"max_lr={high * 10:g}, " if curve.explodes == steps else ""
    return (
        f"up to {curve.rates[-1]:.3g} the loss falls by no more than its noise, try "
        f"{larger}steps={steps * 4}, a larger data.batch_size, or `train debug=overfit`"
    )
