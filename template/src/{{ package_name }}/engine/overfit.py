"""One batch learned by heart (`debug=overfit`), or what to look at."""

import logging
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torch import nn

from .errors import RunFailed, UserError
from .split_facts import inputs_and_labels

DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)

log = logging.getLogger(__name__)


class LearnedByHeart(Callback):
    """Stops as soon as the mean training loss of an epoch is below the threshold.

    Args:
        threshold: The loss to reach, above 0.

    Raises:
        RunFailed: at the end, if it was not reached, with what to look at.
    """

    def __init__(self, threshold: float = 0.01) -> None:
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not threshold > 0:
            raise ValueError(f"threshold must be above 0 (got {threshold})")
        self.threshold = threshold
        self.losses: list[float] = []

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        if trainer.global_step or not trainer.is_global_zero:
            return
        labels = inputs_and_labels(batch)[1]
        if labels is not None and len(labels) > 1 and (labels == labels[0]).all():
            log.warning(
                "all %d samples of the batch are of class %d, which is learned without looking at the inputs: type a "
                "larger data.batch_size, or mix the samples in setup of the data module",
                len(labels),
                labels[0],
            )

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if "train/loss" not in trainer.callback_metrics:
            return
        self.losses.append(float(trainer.callback_metrics["train/loss"]))
        if self.losses[-1] < self.threshold:
            trainer.should_stop = True

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        steps = trainer.global_step
        if not steps:
            return
        if not self.losses:
            raise UserError(f"debug=overfit looks at train/loss, which {type(pl_module).__name__} does not log: log it")
        last = self.losses[-1]
        if self.losses[0] < self.threshold:
            raise RunFailed(
                f"train/loss is {self.losses[0]:.4f} before anything is learned, below {self.threshold}: choose a "
                "callbacks.overfit.threshold well below the first loss, and a loss that is above 0",
                "failed",
                {"train_loss": last},
            )
        if last < self.threshold:
            log.info("overfit    the batch is learned by heart: train/loss %.4f after %d steps", last, steps)
            return
        rates = [group["lr"] for optimizer in trainer.optimizers for group in optimizer.param_groups]
        found = "\n".join(f"  {line}" for line in suspects(pl_module, self.losses, max(rates)))
        raise RunFailed(
            f"the batch is not learned by heart: train/loss is {last:.4f} after {steps} steps, "
            f"{self.threshold} was to be reached; look at, in this order,\n{found}",
            "failed",
            {"train_loss": last},
        )


def suspects(module: nn.Module, losses: list[float], lr: float) -> list[str]:
    """What keeps a loss from falling, as far as module, course of the loss and learning rate tell."""
    lines = ["data: are the labels right, and the same in every step? The command preview draws a batch"]
    for part in module.modules():
        if isinstance(part, nn.CrossEntropyLoss) and (smoothing := part.label_smoothing):
            classes = getattr(module, "num_classes", None)
            floor = f", the loss stays above {least_loss(smoothing, classes):.3f}" if isinstance(classes, int) else ""
            lines.append(f"label smoothing: it is {smoothing}{floor}; type model.label_smoothing=0")
    if dropping := [name for name, part in module.named_modules() if isinstance(part, DROPOUTS) and part.p > 0]:
        lines.append(f"dropout: it is on in {_some(dropping)}; switch it off, as in model.net.dropout=0")
    if frozen := [name for name, parameter in module.named_parameters() if not parameter.requires_grad]:
        lines.append(f"frozen parameters: {_some(frozen)} are not trained")
    has_cross_entropy = any(isinstance(part, nn.CrossEntropyLoss) for part in module.modules())
    if has_cross_entropy and (found := [name for name, part in module.named_modules() if isinstance(part, nn.Softmax)]):
        lines.append(f"softmax: the loss takes logits; leave {_some(found)} out if the outputs come from it")
    quarter = max(1, len(losses) // 4)
    earlier, later = losses[-2 * quarter : -quarter] or losses[:1], losses[-quarter:]
    falls = sum(later) / len(later) < 0.9 * sum(earlier) / len(earlier)
    if not lr:
        lines.append("learning rate: it is 0; type optimizer.lr=0.001")
    elif falls:
        lines.append("length: the loss still falls; type trainer.max_epochs=1000")
    else:
        lines.append("learning rate: the loss does not fall any more; try optimizer.lr ten times larger and smaller")
    lines.append("gradients: debug=gradients names parameters that get none")
    return lines


def least_loss(smoothing: float, classes: int) -> float:
    """The smallest cross-entropy with smoothed labels: the entropy of the smoothed distribution."""
    target = torch.full((classes,), smoothing / classes, dtype=torch.float64)
    target[0] += 1 - smoothing
    return float(-torch.special.xlogy(target, target).sum())


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
