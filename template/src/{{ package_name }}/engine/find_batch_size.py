"""Finds the largest batch size that fits into the memory of a device."""

import logging
import os
import signal
from collections.abc import Callable, Iterable, Sized

from lightning.pytorch.utilities.memory import garbage_collection_cuda, is_oom_error
from omegaconf import DictConfig

from . import batch_size
from .cgroups import memory_limit
from .errors import JobFailed, UserError
from .finder import Rehearsal, rehearsal, training_line
from .out_of_memory import explain, is_out_of_memory, peak_of_process

COMMAND = "find_batch_size"
STEPS = 3  # with each size; from the second on, all is there that a training keeps

log = logging.getLogger(__name__)


def find_batch_size(composed: DictConfig, words: Iterable[str]) -> int:
    """Prints the line that trains with the largest size that fits, and returns the size.

    Lightning's own finder (2.6.6) is not used: where it comes to its limit or to the end of the training set, it
    answers with a size that it has not tried, and with 0 or 1 where nothing fits.

    Args:
        composed: What `configs/find_batch_size.yaml` composes.
        words: The command line that it was composed from.

    Raises:
        UserError: a training or a search that makes no sense.
        JobFailed: no size fits.
    """
    _check(composed)
    with rehearsal(composed, COMMAND) as training:
        _set_up_once(training)
        limit, bound = _limit(training, composed["max_size"])
        refused: dict[int, str] = {}
        fits, start, trials = _trial(training, refused), composed["start"], composed["max_trials"]
        found = search(fits, start, limit, trials, bisect=composed["mode"] == "binsearch")
        if not found:
            smallest = min(refused)
            config = {**training.config, "data": {**training.config["data"], "batch_size": smallest}}
            what = explain(MemoryError(refused[smallest]), config, training.devices)
            raise JobFailed(f"not even {smallest} at a time fit\n{what}")
        if composed["mode"] == "binsearch" and refused:
            found = max(1, int(found * (1 - composed["margin"])))
        log.info("largest    %d samples%s", found, f": {bound}" if found == limit else "")
        if training.device.kind == "cpu":
            log.info("           (the memory of a CPU ends late: what fits there need not fit a GPU, nor be fast)")
        _say_what_becomes_of_the_rate(training, found)
    log.info("\n%s", training_line(COMMAND, f"data.batch_size={found}", words))
    return found


def search(fits: Callable[[int], bool], start: int, limit: int, trials: int, bisect: bool = False) -> int:
    """The largest size up to `limit` that was tried and fits, or 0.

    Sizes are doubled until one does not fit; if already the first does not, they are halved until one does.

    Args:
        fits: Whether a size fits.
        start: The first size.
        limit: The largest.
        trials: How many are tried at most.
        bisect: Goes on halfway between those that fit and those that do not.
    """
    size, good, bad = min(start, limit), 0, limit + 1
    for _ in range(trials):
        if fits(size):
            good = size
        else:
            bad = size
        if bad - good == 1 or (good and bad <= limit and not bisect):
            break
        size = min(2 * good, limit) if good and bad > limit else (good + bad) // 2
    return good


def _trial(training: Rehearsal, refused: dict[int, str]) -> Callable[[int], bool]:
    """Trains a few steps with a size; `refused` gets what the memory says to those that do not fit."""
    accumulate = min(2, training.accumulate)  # two batches keep gradients as more do
    on_cpu, base, good = training.device.kind == "cpu", peak_of_process(), list[int]()

    def fits(size: int) -> bool:
        if on_cpu and good and (needs := base + (peak_of_process() - base) * size / max(good)) > _memory() / 2:
            refused[size] = f"some {needs / 1e9:.1f} GB are more than half of this machine's memory"
            log.info("%7d    is not tried: %s", size, refused[size])
            return False
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a destructor would swallow what Ctrl-C raises
        garbage_collection_cuda()  # what the last size left
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        training.data.batch_size = size
        trainer = training.trainer(max_steps=STEPS, accumulate_grad_batches=accumulate)
        try:
            trainer.fit(training.module, training.data)
            good.append(size)
        except Exception as error:
            if not (is_out_of_memory(error) or is_oom_error(error)):
                raise
            refused[size] = str(error)  # the error itself would keep all that filled the memory
        log.info("%7d    %s", size, "does not fit" if size in refused else "fits")
        return size not in refused

    return fits


def _memory() -> float:
    """Bytes of this machine, or of the container; a CPU that has none left ends the process without a word."""
    return min(memory_limit(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _set_up_once(training: Rehearsal) -> None:
    """Prepares the data as the first of several Trainers would, and keeps the others from doing it again."""
    data = training.data
    data.trainer = training.trainer()
    data.prepare_data()
    data.setup("fit")
    data.__dict__ |= dict.fromkeys(("prepare_data", "setup"), _do_nothing)


def _do_nothing(stage: str = "") -> None:
    pass


def _limit(training: Rehearsal, max_size: int) -> tuple[int, str]:
    """The largest size to try, and why no larger one."""
    samples, parts = getattr(training.data, "train_set", None), training.accumulate
    if not isinstance(samples, Sized) or max_size <= (most := len(samples) // parts):
        return max_size, "max_size allows no more"
    if not most:
        raise UserError(
            f"a step takes {parts} batches, and the training set has {len(samples)} samples: lower "
            "trainer.accumulate_grad_batches or trainer.devices"
        )
    step = "a step" if parts == 1 else f"a step of {parts} batches"
    return most, f"{step} takes the whole training set"


def _say_what_becomes_of_the_rate(training: Rehearsal, found: int) -> None:
    config = {**training.config, "data": {**training.config["data"], "batch_size": found}}
    _, facts = batch_size.apply(config, training.devices.world_size)
    scaling = config.get("optimizer_scaling")
    for line in batch_size.header_lines(config, facts):
        log.info(line)
    if scaling is not None and scaling["rule"] == "none" and facts["global_batch_size"] != scaling["base_batch_size"]:
        log.info(
            "lr         chosen for %s samples a step, now %s: add optimizer_scaling=sqrt (linear for sgd), or ask "
            "find_lr",
            scaling["base_batch_size"],
            facts["global_batch_size"],
        )


def _check(config: DictConfig) -> None:
    if (total := config["data"].get("global_batch_size")) is not None:
        raise UserError(f"data.global_batch_size={total} decides the batch size: type data.global_batch_size=null")
    if config["mode"] not in ("power", "binsearch"):
        raise UserError(f"mode must be power or binsearch (got {config['mode']!r})")
    for key in ("start", "max_size", "max_trials"):
        value = config[key]
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UserError(f"{key} must be a whole number from 1 (got {value!r})")
    margin = config["margin"]
    if isinstance(margin, bool) or not isinstance(margin, (int, float)) or not 0 <= margin < 1:
        raise UserError(f"margin must be a share from 0 to below 1 (got {margin!r})")
