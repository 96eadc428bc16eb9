"""One line for each mistake that Hydra or OmegaConf finds in a command line or in a config."""

import errno
import sys
from collections.abc import Iterable, Iterator
from traceback import walk_tb
from typing import Any

from hydra.errors import HydraException, InstantiationException, MissingConfigException, OverrideParseException
from omegaconf import OmegaConf
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    GrammarParseError,
    InterpolationKeyError,
    InterpolationResolutionError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from .config import flat
from .config_folder import did_you_mean, nearest
from .errors import UserError

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_CONFIG_MISTAKES = (GrammarParseError, InterpolationKeyError, InterpolationResolutionError, MissingMandatoryValue)


def one_line(error: BaseException, groups: Iterable[str] = ()) -> str | None:
    """What is wrong and what to type, or None where the error is a bug that deserves its traceback.

    `groups` are those that could have been meant: one that is null by default is no key of the config.
    """
    chain = list(_causes(error))
    for cause in chain:
        if isinstance(cause, UserError):
            return str(cause)
        if isinstance(cause, OSError) and (cause.errno in _DISK or _met_by_hydra(cause)):
            return f"{cause.filename or 'a file of the run'} cannot be written: {cause.strerror}"
    if isinstance(error, InstantiationException):
        return None
    for cause in chain:
        if isinstance(cause, MissingMandatoryValue):
            return f"{cause.full_key} needs a value: type {cause.full_key}=VALUE"
        if isinstance(cause, _CONFIG_MISTAKES):
            return f"{cause.full_key}: {_first_line(cause)}".removeprefix("None: ")
    if isinstance(error, MissingConfigException):
        return _missing_config(error)
    if isinstance(error, OverrideParseException):
        return _unreadable(error)
    if isinstance(error, HydraException):
        return _composition(error, groups)
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _met_by_hydra(error: OSError) -> bool:
    """Whether it was Hydra itself that asked the system for a file: it makes the directories of runs and sweeps."""
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    callers = [name.partition(".")[0] for name in modules if name.partition(".")[0] not in sys.stdlib_module_names]
    return error.errno is not None and callers[-1:] == ["hydra"]


def _missing_config(error: MissingConfigException) -> str:
    group, _, option = (error.missing_cfg_file or "").rpartition("/")
    if not group or error.options is None:
        return _flat(error)
    hint = did_you_mean(nearest(option, error.options))
    return f"{group}={option} does not exist.{hint} Options: {', '.join(error.options)}."


def _unreadable(error: OverrideParseException) -> str:
    if "=" not in error.override:
        return f"{error.override} is no setting: type GROUP=OPTION or KEY=VALUE"
    return (
        f"Hydra cannot read {error.override} ({_first_line(error)}): "
        "a value with , ( ) [ ] { } = : or quotes needs two pairs of quotes, as in \"key='a,b'\""
    )


def _composition(error: HydraException, groups: Iterable[str]) -> str:
    cause = error.__cause__
    if isinstance(cause, (ConfigAttributeError, ConfigKeyError)) and cause.full_key:
        return _missing_key(cause, groups)
    if isinstance(cause, OmegaConfBaseException):
        return f"{_flat(error)}: {_first_line(cause)}".lstrip(": ")
    return _flat(error)


def _missing_key(cause: OmegaConfBaseException, groups: Iterable[str]) -> str:
    full_key = str(cause.full_key)
    parent, dot, key = full_key.rpartition(".")
    known = {str(name) for name in cause.parent_node or ()} - {"hydra"}
    meant = [f"{parent}{dot}{name}" for name in nearest(key, known if parent else known.union(groups))]
    if not parent:
        config: Any = OmegaConf.to_container(cause.parent_node)
        meant = [name for name in flat({**config, "hydra": None}) if name.endswith(f".{key}")][:3] or meant
    hint = did_you_mean(meant) or (f" {parent or 'The config'} has {', '.join(sorted(known))}." if known else "")
    return f"{full_key} does not exist.{hint} A key that is new is added with +{full_key}=VALUE."


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _flat(error: BaseException) -> str:
    return " ".join(str(error).split())
