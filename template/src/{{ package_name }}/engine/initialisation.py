"""First weights that keep the size of activations from layer to layer."""

from torch import nn

RECTIFIERS = ("relu", "gelu", "silu")  # half of their input is cut off or nearly so


def initialise(net: nn.Module, activation: str, last: nn.Linear | None = None) -> None:
    """Draws the weights of every linear and convolutional layer of `net` anew, and sets their biases to zero.

    Kaiming normal for rectifiers (He et al. 2015), Xavier normal for the saturating others (Glorot and Bengio 2010).
    `last` gets weights of deviation 0.001: logits start near zero and the first loss near ln(classes), which saves the
    steps that would otherwise go into unlearning a wrong confidence.
    """
    for layer in net.modules():
        if not isinstance(layer, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)):
            continue
        if layer is last:
            nn.init.normal_(layer.weight, std=0.001)
        elif activation in RECTIFIERS:
            nn.init.kaiming_normal_(layer.weight, mode="fan_in", nonlinearity="relu")
        else:
            nn.init.xavier_normal_(layer.weight, gain=nn.init.calculate_gain("tanh"))
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
