"""Runs a command whose arguments Hydra composes, with one line instead of a traceback for a mistake."""

import functools
import io
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from itertools import islice
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, ValueType
from hydra.types import RunMode
from omegaconf import DictConfig

from . import check_option, resolvers, resume_option  # noqa: F401
from .config_folder import PACKAGE, TRAINS, cure_for_none, groups, is_group
from .errors import JobFailed, UserError
from .features import feature
from .kept_options import options_kept
from .one_line_errors import one_line
from .path_options import quote_path_options

_SWITCH = "HYDRA_FULL_ERROR"
_ASKED = os.environ.get(_SWITCH)  # read before the switch is touched
_SWEEP = {"-m", "--multirun"}
_LONG = "cfg resolve package run config-path config-name config-dir info hydra-help experimental-rerun"
_FLAGS = _SWEEP | {"-c", "-p", "-r", "-cp", "-cn", "-cd", "-i"} | {f"--{name}" for name in _LONG.split()}


def hydra_job(task: Callable[[DictConfig], Any]) -> Callable[[DictConfig], Any]:
    """Decorates what `hydra.main` runs, below `@hydra.main(...)`: a mistake that the job finds ends it with one line.

    In a sweep the mistake stays an exception, so that the other jobs go on.
    """

    @functools.wraps(task)
    def run_job(config: DictConfig) -> Any:
        with _full_errors(_ASKED):
            try:
                return task(config)
            except Exception as error:
                message = str(error) if isinstance(error, JobFailed) else one_line(error)
                if message is None or _ASKED == "1" or HydraConfig.get().mode is not RunMode.RUN:
                    raise
                sys.stderr.write(f"{message}\n")
                sys.exit(1 if isinstance(error, JobFailed) else 2)

    return run_job


def run(name: str) -> None:
    """Runs the command with the words in `sys.argv`. Raises UserError for a mistake in them or in the configs."""
    program, *words = sys.argv
    _refuse_unknown_flags(program, words)
    _refuse_null_groups(name, words)
    is_sweep = not _SWEEP.isdisjoint(words)
    if is_sweep and name != TRAINS and groups(name):
        raise UserError(f"{name} takes one configuration: leave -m out and type one value for each key")
    words = [word for word in words if word not in _SWEEP]
    sweeps = feature("sweeps", "command_line") if name == TRAINS else None
    if name == TRAINS:
        words = check_option.expand(resume_option.expand(words, is_sweep))
    if sweeps is not None:
        words = sweeps.expand(words, is_sweep)
    words = quote_path_options(words)
    main = import_module(f"{PACKAGE}.commands.{name}").main
    # Hydra's documented switch for full tracebacks also lets its exceptions out of `hydra.main`; `hydra_job` resets it.
    with _full_errors("1"):
        try:
            if is_sweep:
                _compose_before_sweep(main, program, words)
                main = sweeps.summarised(main) if sweeps is not None else main
            sys.argv[:] = [program, *words, *(["--multirun"] if is_sweep else [])]
            with options_kept(words):
                main()
        except Exception as error:
            message = (sweeps and sweeps.missing_plugin(error)) or one_line(error, groups(name))
            if message is None or _ASKED == "1":
                raise
            raise UserError(message) from error


@contextmanager
def _full_errors(value: str | None) -> Generator[None]:
    before = os.environ.pop(_SWITCH, None)
    if value is not None:
        os.environ[_SWITCH] = value
    try:
        yield
    finally:
        os.environ.pop(_SWITCH, None)
        if before is not None:
            os.environ[_SWITCH] = before


def _refuse_unknown_flags(program: str, words: list[str]) -> None:
    for word in words:
        flag, _, value = word.partition("=")
        if flag.startswith("-") and flag not in _FLAGS:
            raise UserError(
                f"{flag} is no flag: keys are set without dashes, as in {flag.lstrip('-')}={value or 'VALUE'}"
                f" (`{program} --help` lists groups, keys and flags)"
            )


def _refuse_null_groups(name: str, words: list[str]) -> None:
    """Hydra answers `callbacks=null` with a traceback that does not name the group."""
    for word in words:
        group, _, value = word.partition("=")
        if value == "null" and group in groups(name):
            raise UserError(f"{group}=null is no option: {cure_for_none(group)}")


def _compose_before_sweep(main: Callable[[], Any], program: str, words: list[str]) -> None:
    """Composes every option that the sweep names once: Hydra finds a typo only after it made the sweep directory."""
    choices = [values for word in words if (values := _choices(word))]
    first = [values[0] for values in choices]
    lines = [first]
    for place, values in enumerate(choices):
        lines += [[*first[:place], value, *first[place + 1 :]] for value in values[1:]]
    for line in lines:
        sys.argv[:] = [program, *line, "--cfg", "job"]
        with redirect_stdout(io.StringIO()):
            main()


def _choices(word: str) -> list[str]:
    """The values of a word to try: all of a group, one of a key, none of a pattern."""
    if word.startswith("-") or "=" not in word:
        return [word]
    override = OverridesParser.create().parse_overrides([word])[0]
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [word]
    if isinstance(interval := override.value(), IntervalSweep):
        return [f"{key}={interval.start}"]
    if override.value_type is ValueType.GLOB_CHOICE_SWEEP:
        return []
    count = None if is_group(override.key_or_group) else 1
    return [f"{key}={value}" for value in islice(override.sweep_string_iterator(), count)]
