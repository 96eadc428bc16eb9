"""Building what a config names, with one line for a name or an argument that does not exist."""

import inspect
from typing import Any

import hydra
from hydra.errors import InstantiationException
from hydra.utils import get_object

from .errors import UserError

PACKAGE = __name__.partition(".")[0]
OWN = (f"{PACKAGE}.data.", f"{PACKAGE}.models.")  # the owner's code


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
        cause, message = error.__cause__, str(error)
        if message.startswith("Error locating target"):
            raise UserError(f"{where}: {message.partition(',')[0]}") from error
        is_own = any(f"'{package}" in message for package in OWN)  # whose bugs deserve their traceback
        is_argument = isinstance(cause, ValueError) or "unexpected keyword argument" in str(cause)
        if isinstance(cause, Exception) and not isinstance(cause, ImportError) and (is_argument or not is_own):
            raise mistake(where, cause) from error
        raise


def mistake(where: str, error: Exception) -> UserError:
    """What a library says of a value that it was given, as a user's mistake; the log keeps the traceback."""
    return UserError(f"{where}: {' '.join(str(error).split()) or type(error).__name__}")


def _check_factories(config: Any, where: str) -> None:
    """Binds the arguments of each `_partial_` target now; they would be used only when training starts."""
    if not isinstance(config, dict):
        return
    for key, value in config.items():
        _check_factories(value, f"{where}.{key}")
    if config.get("_partial_") and isinstance(config.get("_target_"), str):
        arguments = {key: value for key, value in config.items() if not key.startswith("_")}
        try:
            inspect.signature(get_object(config["_target_"])).bind_partial(**arguments)
        except ImportError as error:
            raise UserError(f"{where}: {' '.join(str(error).split())}") from error
        except TypeError as error:
            raise UserError(f"{where}: {config['_target_']} {error}") from error
