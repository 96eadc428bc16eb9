"""What can be known before the first step is said before it: in one line, on every rank alike."""

import logging
from collections.abc import Callable, Sized
from typing import Any

import torch.distributed as distributed
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torch import Tensor, nn
from torch.utils.data import BatchSampler

from .class_sampling import corrects_twice
from .cores import usable_cores
from .errors import UserError
from .first_batch import describe, say_first_loss
from .module import Step, TrainingModule

FEW = 8  # samples; from fewer, BatchNorm's mean and deviation are unreliable
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)

log = logging.getLogger(__name__)


class Checked(BaseException):
    """`check=true`: nothing stands in the way, and the training is not to begin. No failure, so nothing is saved."""


class Preflight(Callback):
    """Looks at loaders when training starts, and at the first batch that it has anyway.

    It draws no random number, loads nothing, and is out of the way after the first step. What is monitored, and when a
    plateau schedule looks, is checked by `engine.monitors` and `engine.plateau`.

    Args:
        only_check: Ends with `Checked` after the first batch's forward pass.
        untrained: The first loss is that of weights that have seen no data yet.

    Raises:
        UserError: a training that could not work, with what was found and what to type.
    """

    def __init__(self, only_check: bool = False, untrained: bool = False) -> None:
        self.only_check = only_check
        self.untrained = untrained

    def on_validation_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        _forget(self, "on_validation_batch_start")
        if isinstance(pl_module, TrainingModule) and _is_of_base(pl_module, "validation_step"):
            try:
                pl_module.check_batch(batch)
            except UserError as error:  # a rank may have no share here: whoever finds it says so alone
                raise UserError(f"the first validation batch: {error}") from None
            _watch_step(pl_module, lambda first: _refuse_what_is_no_loss(pl_module, first))

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        _look_at_accumulation(trainer)
        _look_at_workers(trainer)
        if corrects_twice(trainer, pl_module):
            _warn(
                trainer,
                "rare classes count more twice, by data.sampler=%s and by weights of the loss: leave one out, as with "
                "data.sampler=uniform",
                trainer.datamodule.sampler,  # type: ignore[attr-defined]
            )

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        _forget(self, "on_train_batch_start")
        _look_at_batchnorm(trainer, pl_module)
        if isinstance(pl_module, TrainingModule):
            _check_on_all_ranks(trainer, pl_module, batch)
            if _is_of_base(pl_module, "training_step"):
                module = pl_module
                is_to_say = self.untrained and trainer.is_global_zero and trainer.global_step == 0

                def look(first: Step) -> None:
                    _refuse_what_is_no_loss(module, first)
                    _refuse_what_has_no_gradient(module, first)
                    module.check_step(first)
                    if is_to_say:
                        say_first_loss(first.loss.detach(), first.outputs, first.targets)
                    if self.only_check:
                        raise Checked(describe(batch))

                _watch_step(module, look)
                return
        if self.only_check:
            raise Checked(describe(batch))

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.num_training_batches:  # Lightning ends without a word
            raise UserError("there are no training batches: look at the training set and at train_dataloader")


def _forget(callback: Callback, hook: str) -> None:
    """Lightning calls a hook only if it is callable: from now on it costs nothing."""
    setattr(callback, hook, None)


def _is_of_base(module: TrainingModule, hook: str) -> bool:
    """Whether the module's batches go through `step`."""
    return getattr(type(module), hook) is getattr(TrainingModule, hook)


def _warn(trainer: Trainer, *message: Any) -> None:
    if trainer.is_global_zero:
        log.warning(*message)


def _look_at_accumulation(trainer: Trainer) -> None:
    batches, accumulated = trainer.num_training_batches, trainer.accumulate_grad_batches
    if accumulated <= batches:
        return
    if isinstance(trainer.limit_train_batches, float):  # a share: 1 is a single batch, asked for as in debug=fast
        raise UserError(
            f"trainer.accumulate_grad_batches={accumulated} is more than the {batches} batches of an epoch: "
            f"type trainer.accumulate_grad_batches={batches} or less, or a smaller data.batch_size"
        )
    _warn(trainer, "a step accumulates %s batches, not %d: that is all of a short epoch", batches, accumulated)


def _look_at_workers(trainer: Trainer) -> None:
    workers = getattr(trainer.train_dataloader, "num_workers", 0) * (trainer.world_size // trainer.num_nodes)
    cores = usable_cores()
    if workers > cores:
        _warn(
            trainer,
            "data.num_workers starts %d processes for %d cores: data.num_workers=auto fits them",
            workers,
            cores,
        )


def _look_at_batchnorm(trainer: Trainer, module: LightningModule) -> None:
    """Statistics of one sample are refused: the network that is evaluated is then another one than was trained."""
    if not any(isinstance(layer, NORMS) and layer.training for layer in module.modules()):
        return
    loader = trainer.train_dataloader
    batches = getattr(loader, "batch_sampler", None)
    size = getattr(batches, "batch_size", FEW)
    cure = "choose a norm of single samples, such as model.net.norm=group"
    if size == 1:
        raise UserError(f"data.batch_size=1 leaves BatchNorm one sample: type data.batch_size={FEW} or more, or {cure}")
    is_sized = isinstance(batches, BatchSampler) and isinstance(batches.sampler, Sized)  # a stream has no length
    is_whole = is_sized and trainer.num_training_batches == len(batches)  # type: ignore[arg-type]
    if is_whole and not batches.drop_last and len(batches.sampler) % size == 1:  # type: ignore[union-attr]
        raise UserError(f"the last batch leaves BatchNorm one sample: give the loader drop_last=True, or {cure}")
    if size < FEW:
        _warn(
            trainer,
            "BatchNorm is unreliable with %d samples per device: type data.batch_size=%d or more, "
            "model.net.norm=group, or model.net.norm_momentum=0.01",
            size,
            FEW,
        )


def _check_on_all_ranks(trainer: Trainer, module: TrainingModule, batch: Any) -> None:
    """Raises on every rank what one has found: alone, it would leave the others waiting for it."""
    mine: str | None = None
    try:
        module.check_batch(batch)
    except UserError as error:
        mine = f"the first training batch: {error}"
    found = [mine] * trainer.world_size
    if trainer.world_size > 1:
        distributed.all_gather_object(found, mine)
    for message in found:
        if message:
            raise UserError(message)


def _watch_step(module: TrainingModule, look: Callable[[Step], None]) -> None:
    """Puts itself in the place of the module's `step`, for one call, and looks at what that returns."""

    def step(batch: Any) -> Step:
        del module.__dict__["step"]
        try:
            first = module.step(batch)
        except ValueError as error:
            if "more than 1 value per channel" not in str(error):
                raise
            raise UserError(
                f"BatchNorm gets one value a channel from {describe(batch)}: type model.net.norm=group"
            ) from error
        look(first)
        return first

    module.__dict__["step"] = step


def _refuse_what_is_no_loss(module: TrainingModule, step: Any) -> None:
    name = type(module).__name__
    if not isinstance(step, Step):
        raise UserError(f"{name}.step must return a Step(loss, outputs, targets) (got {describe(step)})")
    loss: Any = step.loss
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        found = describe(loss) if isinstance(loss, Tensor) else repr(loss)
        raise UserError(
            f"the loss of {name}.step must be one number in a tensor, the mean over the batch (got {found})"
        )


def _refuse_what_has_no_gradient(module: TrainingModule, step: Step) -> None:
    if not step.loss.requires_grad:
        name = type(module).__name__
        raise UserError(f"the loss of {name}.step has no gradient: is it detached, or is every parameter frozen?")
