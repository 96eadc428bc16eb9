"""Building objects from a config that may come from a stranger's checkpoint."""

from typing import Any

from hydra.utils import get_object
from lightning.pytorch import LightningDataModule
from torch import nn
from torchmetrics import Metric

from .build import build
from .errors import UserError

PACKAGE = __name__.partition(".")[0]
OWN = (f"{PACKAGE}.data.", f"{PACKAGE}.models.")
LIBRARIES = ("torch.", "lightning.", "torchmetrics.")
KINDS = (nn.Module, LightningDataModule, Metric)
# modules of torch that run or load code when they are built
REFUSED = ("torch.jit", "torch.fx", "torch.package", "torch.export", "torch.utils", "torch.distributed", "torch._")


def build_harmless(config: dict[str, Any], where: str, trusted: tuple[str, ...] = ()) -> Any:
    """Builds `config` after every `_target_` in it was found harmless.

    Harmless are classes of this project's `data/` and `models/`, the modules, metrics and data modules of the
    libraries, and the names in `trusted`.

    Raises:
        UserError: another name, or an interpolation. Nothing was built then.
    """
    check(config, where, trusted)
    return build(config, where)


def check(node: Any, where: str, trusted: tuple[str, ...] = ()) -> None:
    """Raises the UserError of `build_harmless` for the first place in `node` that is not harmless."""
    if isinstance(node, dict):
        if "_target_" in node and node["_target_"] not in trusted:
            _check_target(node["_target_"], where)
        for key, value in node.items():
            check(key, where, trusted)
            check(value, f"{where}.{key}", trusted)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            check(value, f"{where}[{index}]", trusted)
    elif isinstance(node, str) and "${" in node:
        raise UserError(f"{where}: the checkpoint's config holds the interpolation {node!r}; a run stores none")


def _check_target(name: Any, where: str) -> None:
    refusal = f"{where}: the checkpoint's config wants to build {name!r}, which"
    cure = f'if you trust it, add trusted_targets=["{name}"]'
    if not isinstance(name, str) or not name.startswith((*OWN, *LIBRARIES)):
        raise UserError(f"{refusal} is neither this project's nor a library's module; {cure}")
    try:
        found = get_object(name)
    except Exception as error:
        raise UserError(f"{refusal} cannot be found ({error})") from error
    home = f"{getattr(found, '__module__', '')}."
    if home.startswith(OWN) and isinstance(found, type):
        return
    if not isinstance(found, type) or not issubclass(found, KINDS):
        raise UserError(f"{refusal} is no module, metric or data module; {cure}")
    if not home.startswith((*OWN, *LIBRARIES)) or home.startswith(REFUSED):
        raise UserError(f"{refusal} really is {home}{found.__qualname__}; {cure}")
