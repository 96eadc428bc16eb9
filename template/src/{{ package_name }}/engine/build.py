"""Building what a config names, with one line for a name or an argument that does not exist."""

import inspect
from typing import Any

import hydra
from hydra.errors import InstantiationException
from hydra.utils import get_object

from .errors import UserError


def build(config: Any, where: str) -> Any:
    """Instantiates every `_target_` in `config`; containers become plain lists and dicts.

    Args:
        config: Plain data.
        where: The key of `config`, for messages.

    Raises:
        UserError: a `_target_` that cannot be imported, or an argument that it does not take.
    """
    _check_factories(config, where)
    try:
        return hydra.utils.instantiate(config, _convert_="all")
    except InstantiationException as error:
        cause = error.__cause__
        if isinstance(cause, TypeError) and "unexpected keyword argument" in str(cause):
            raise UserError(f"{where}: {cause}") from error
        if str(error).startswith("Error locating target"):
            raise UserError(f"{where}: {str(error).partition(',')[0]}") from error
        raise


def _check_factories(config: Any, where: str) -> None:
    """Binds the arguments of each `_partial_` target now; they would be used only when training starts."""
    if not isinstance(config, dict):
        return
    for key, value in config.items():
        _check_factories(value, f"{where}.{key}")
    if config.get("_partial_"):
        arguments = {key: value for key, value in config.items() if not key.startswith("_")}
        try:
            inspect.signature(get_object(config["_target_"])).bind_partial(**arguments)
        except ImportError as error:
            raise UserError(f"{where}: {' '.join(str(error).split())}") from error
        except TypeError as error:
            raise UserError(f"{where}: {config['_target_']} {error}") from error
