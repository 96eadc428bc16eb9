"""Building objects from a config that may come from a stranger's checkpoint."""

from typing import Any

from hydra.utils import get_object
from torch import nn
from torchmetrics import Metric

from .build import OWN, build
from .errors import UserError

# Constructors that only build. Elsewhere in these libraries some read files, load weights or call what they are given.
KINDS = ("aggregation", "classification", "clustering", "nominal", "regression", "retrieval", "segmentation")
HARMLESS = ("torch.nn.", *(f"torchmetrics.{kind}." for kind in KINDS))


def build_harmless(config: Any, where: str, kind: type, trusted: tuple[str, ...] = ()) -> Any:
    """Builds `config` after every `_target_` in it was found harmless, and checks that the result is a `kind`.

    Harmless are classes of this project's `data/` and `models/`, the modules of `torch.nn`, the metrics of torchmetrics
    that need no weights, and the names in `trusted`.

    Raises:
        UserError: another name, an interpolation, or an object of another kind. What is refused is never built.
    """
    check(config, where, trusted)
    built = build(config, where)
    if not isinstance(built, kind):
        raise UserError(f"{where}: the checkpoint's config builds a {type(built).__name__}, not a {kind.__name__}")
    return built


def check(node: Any, where: str, trusted: tuple[str, ...] = ()) -> None:
    """Raises the UserError of `build_harmless` for the first place in `node` that is not harmless."""
    if isinstance(node, dict):
        if "_target_" in node and node["_target_"] not in trusted:
            _check_target(node["_target_"], where)
        for key, value in node.items():
            check(key, where, trusted)
            check(value, f"{where}.{key}", trusted)
    elif isinstance(node, (list, tuple)):
        for index, value in enumerate(node):
            check(value, f"{where}[{index}]", trusted)
    elif isinstance(node, str) and "${" in node:
        raise UserError(f"{where}: the checkpoint's config holds the interpolation {node!r}; a run stores none")
    elif node is not None and type(node) not in (str, int, float, bool):
        raise UserError(f"{where}: the checkpoint's config holds a {type(node).__name__}; a run stores plain values")


def _check_target(name: Any, where: str) -> None:
    refusal = f"{where}: the checkpoint's config wants to build {name!r}, which"
    cure = f"if you trust it, add trusted_targets=['{name}']"
    if not isinstance(name, str) or not name.startswith((*OWN, "torch.nn.", "torchmetrics.")):
        raise UserError(f"{refusal} is neither this project's nor a module of torch.nn or a metric; {cure}")
    try:
        found = get_object(name)
    except Exception as error:
        raise UserError(f"{refusal} cannot be found ({str(error).splitlines()[0]})") from error
    home = f"{getattr(found, '__module__', '')}."
    is_harmless = home.startswith(HARMLESS) and isinstance(found, type) and issubclass(found, (nn.Module, Metric))
    if not is_harmless and not (home.startswith(OWN) and isinstance(found, type)):
        raise UserError(f"{refusal} is none of the classes that only build; {cure}")
