"""A small residual network for images."""

from collections.abc import Sequence

from torch import Tensor, nn

from ..engine.initialisation import initialise
from .layers import Activation, Blocks, Norm, ResidualBlock, make_activation, make_norm


class ResNet(nn.Module):
    """Stages of residual blocks; each stage after the first halves the image and doubles the width.

    Args:
        channels: Channels of the images.
        num_classes: Number of logits.
        blocks: Residual blocks of each stage.
        width: Channels of the first stage.
        norm: `batch`, `group` or `layer`.
        activation: `relu`, `gelu`, `silu` or `tanh`; it also chooses the initialisation.
        norm_momentum: Weight of a batch in BatchNorm's running statistics; smaller for small batches.
        dropout: Share of the features that are dropped before the last layer.
        gradient_checkpointing: Blocks keep their input only for the way back: less memory, some 30 % more time.
    """

    def __init__(
        self,
        channels: int,
        num_classes: int,
        blocks: Sequence[int] = (1, 1),
        width: int = 32,
        norm: Norm = "batch",
        activation: Activation = "relu",
        norm_momentum: float = 0.1,
        dropout: float = 0.0,
        gradient_checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.channels = channels
        self.stem = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.stem_norm = make_norm(norm, width, norm_momentum)
        self.activation = make_activation(activation)
        stages: list[nn.Module] = []
        features = width
        for stage, depth in enumerate(blocks):
            for block in range(depth):
                stride = 2 if stage > 0 and block == 0 else 1
                stages.append(ResidualBlock(features, width * 2**stage, stride, norm, activation, norm_momentum))
                features = width * 2**stage
        self.blocks = Blocks(*stages, gradient_checkpointing=gradient_checkpointing)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(features, num_classes)
        initialise(self, activation, last=self.head)

    def forward(self, images: Tensor) -> Tensor:
        """Maps images `[B, channels, H, W]` float32 to logits `[B, num_classes]`."""
        hidden = self.blocks(self.activation(self.stem_norm(self.stem(images))))
        return self.head(self.dropout(hidden.mean(dim=(2, 3))))
