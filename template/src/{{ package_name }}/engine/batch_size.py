"""How many samples a step sees on each device, and what their number does to the learning rate."""

from typing import Any

from .config import Config
from .errors import UserError

POWERS = {"none": 0.0, "sqrt": 0.5, "linear": 1.0}  # of the ratio of the batch sizes
RATES = ("min_lr", "eta_min", "base_lr", "max_lr")  # what torch's schedules call learning rates of their own


def apply(config: Config, world_size: int) -> tuple[Config, dict[str, Any]]:
    """The config to build data and model from, and the facts for the record: batch sizes in samples, learning rates.

    A schedule's own peak and floor are multiplied as `lr` is: every step has its stated learning rate times the factor.
    A run stores `config` and never this one, in which nothing is left to apply: a second time changes nothing.

    Raises:
        UserError: the global batch size cannot be shared evenly, or there is no `lr` to scale.
    """
    accumulate = config["trainer"].get("accumulate_grad_batches", 1)
    batch = _per_device(config["data"], world_size, accumulate)
    total = batch * world_size * accumulate
    facts: dict[str, Any] = {"batch_size": batch, "global_batch_size": total}
    applied = {**config, "data": {**config["data"], "batch_size": batch}}
    if "global_batch_size" in config["data"]:
        applied["data"]["global_batch_size"] = None
    scaling = config.get("optimizer_scaling", {"rule": "none"})
    if (rule := scaling["rule"]) == "none":
        return applied, facts
    optimizer, schedule = config["model"].get("optimizer") or {}, config["model"].get("scheduler") or {}
    stated = optimizer.get("lr")
    if not isinstance(stated, (int, float)):
        raise UserError(
            f"optimizer_scaling={rule} multiplies optimizer.lr, which must be a number (got {stated!r}): "
            f"type ++optimizer.lr=0.001, or optimizer_scaling=none"
        )
    factor = (total / scaling["base_batch_size"]) ** POWERS[rule]
    facts["learning_rate"] = {"stated": stated, "rule": rule, "factor": factor, "applied": stated * factor}
    applied["optimizer_scaling"] = {**scaling, "rule": "none"}
    applied["model"] = {**config["model"], "optimizer": {**optimizer, "lr": stated * factor}}
    if schedule:
        scaled = {key: _times(schedule[key], factor) for key in RATES if key in schedule}
        applied["model"]["scheduler"] = {**schedule, **scaled}
    return applied, facts


def header_lines(config: Config, facts: dict[str, Any]) -> list[str]:
    """Such as `lr         0.003 × 1.414 = 0.004243 (sqrt of 128 / 64 samples)`; nothing where nothing is scaled."""
    if (rate := facts.get("learning_rate")) is None:
        return []
    ratio = f"{rate['rule']} of {facts['global_batch_size']} / {config['optimizer_scaling']['base_batch_size']} samples"
    return [f"lr         {rate['stated']:g} × {rate['factor']:.4g} = {rate['applied']:.4g} ({ratio})"]


def _per_device(data: Config, world_size: int, accumulate: int) -> int:
    total = data.get("global_batch_size")
    if total is None:
        return data["batch_size"]
    share, rest = divmod(total, parts := world_size * accumulate)
    if rest:
        nearest = [f"data.global_batch_size={count * parts}" for count in (share, share + 1) if count]
        raise UserError(
            f"data.global_batch_size={total} is no multiple of {parts} = {world_size} "
            f"{'device' if world_size == 1 else 'devices'} × trainer.accumulate_grad_batches={accumulate}: "
            f"type {' or '.join(nearest)}"
        )
    return share


def _times(rates: Any, factor: float) -> Any:
    if isinstance(rates, list):
        return [_times(rate, factor) for rate in rates]
    return rates * factor if isinstance(rates, (int, float)) else rates
