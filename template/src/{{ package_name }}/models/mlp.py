"""A multilayer perceptron: the baseline that every other network must beat."""

from collections.abc import Sequence

from torch import Tensor, nn

from ..engine.initialisation import initialise
from .layers import Activation, Blocks, make_activation


class MLP(nn.Module):
    """Linear layers with BatchNorm and an activation over the flattened image.

    Args:
        channels, image_size: Images are `[B, channels, image_size, image_size]`.
        num_classes: Number of logits.
        hidden: Features of each hidden layer.
        activation: `relu`, `gelu`, `silu` or `tanh`; it also chooses the initialisation.
        dropout: Share of the features that are dropped after each hidden layer.
        gradient_checkpointing: Hidden layers keep their input only for the way back: less memory, some 30 % more time.
    """

    def __init__(
        self,
        channels: int,
        image_size: int,
        num_classes: int,
        hidden: Sequence[int] = (256, 256),
        activation: Activation = "relu",
        dropout: float = 0.0,
        gradient_checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.channels = channels
        inputs = channels * image_size**2
        layers: list[nn.Module] = []
        for features in hidden:
            layer = [nn.Linear(inputs, features), nn.BatchNorm1d(features), make_activation(activation)]
            layers.append(nn.Sequential(*layer, *([nn.Dropout(dropout)] if dropout else [])))
            inputs = features
        self.hidden = Blocks(*layers, gradient_checkpointing=gradient_checkpointing)
        self.head = nn.Linear(inputs, num_classes)
        initialise(self, activation, last=self.head)

    def forward(self, images: Tensor) -> Tensor:
        """Maps images `[B, channels, image_size, image_size]` float32 to logits `[B, num_classes]`."""
        return self.head(self.hidden(images.flatten(1)))
