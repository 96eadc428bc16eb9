"""The LightningModule: what is computed for a batch, which loss, which metrics."""

from typing import Any

from torch import Tensor, nn
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score

from ..engine.class_weights import ClassWeightedLoss
from ..engine.first_batch import check_classification
from ..engine.module import Step, TrainingModule


class ImageClassifier(TrainingModule):
    """Classifies images into `num_classes`; the network returns logits."""

    def __init__(
        self,
        net: nn.Module,
        num_classes: int,
        label_smoothing: float = 0.0,
        class_weights: list[float] | None = None,
        **training: Any,
    ) -> None:
        super().__init__(**training)
        self.net = net
        self.num_classes = num_classes
        self.criterion = ClassWeightedLoss(num_classes, class_weights, label_smoothing)
        self.track(accuracy=MulticlassAccuracy(num_classes, average="micro", validate_args=False))
        self.track(f1=MulticlassF1Score(num_classes, validate_args=False), stages=("val", "test"))

    def forward(self, images: Tensor) -> Tensor:
        """Maps images `[B, C, H, W]` float32 to logits `[B, num_classes]`."""
        return self.net(images)

    def check_batch(self, batch: Any) -> None:
        super().check_batch(batch)
        check_classification(batch, self.net, self.num_classes)

    def step(self, batch: tuple[Tensor, Tensor]) -> Step:
        images, labels = batch
        logits = self(images)
        return Step(loss=self.criterion(logits, labels), outputs=logits, targets=labels)
