"""Building blocks that the networks share."""

from typing import Literal

from torch import Tensor, nn

from ..engine.gradient_checkpointing import checkpointed

Norm = Literal["batch", "group", "layer"]
Activation = Literal["relu", "gelu", "silu", "tanh"]

ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}


def make_activation(name: Activation) -> nn.Module:
    if name not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)} (got {name!r})")
    return ACTIVATIONS[name]()


def make_norm(name: Norm, channels: int, momentum: float = 0.1) -> nn.Module:
    """Normalises feature maps `[B, C, H, W]`.

    `batch` needs some 8 samples a device or more; `group` (32 groups, fewer where they do not divide) and `layer`
    (one group, Wu and He 2018) do not look at the batch.
    """
    if name not in ("batch", "group", "layer"):
        raise ValueError(f"norm must be batch, group or layer (got {name!r})")
    if name == "batch":
        return nn.BatchNorm2d(channels, momentum=momentum)
    groups = 1 if name == "layer" else next(n for n in (32, 16, 8, 4, 2, 1) if channels % n == 0)
    return nn.GroupNorm(groups, channels)


class Blocks(nn.Sequential):
    """Blocks one after the other; with `gradient_checkpointing` each keeps its input only, for some 30 % more time."""

    def __init__(self, *blocks: nn.Module, gradient_checkpointing: bool = False) -> None:
        super().__init__(*blocks)
        self.gradient_checkpointing = gradient_checkpointing

    def forward(self, input: Tensor) -> Tensor:
        for block in self:
            input = checkpointed(block, input) if self.gradient_checkpointing and self.training else block(input)
        return input


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut (He et al. 2016), `[B, in, H, W]` to `[B, out, H / stride, W / stride]`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        stride: int = 1,
        norm: Norm = "batch",
        activation: Activation = "relu",
        norm_momentum: float = 0.1,
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.norm1 = make_norm(norm, out_channels, norm_momentum)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.norm2 = make_norm(norm, out_channels, norm_momentum)
        self.activation = make_activation(activation)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.activation(self.norm1(self.conv1(x)))
        return self.activation(self.norm2(self.conv2(hidden)) + self.shortcut(x))
