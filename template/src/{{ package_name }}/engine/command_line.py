"""The command line: lists the commands, answers questions about them, and runs one.

Exit codes: 0 done, 1 a bug (with its traceback), 2 a mistake in what was asked (one line on stderr), 128 + n stopped
by signal n (130 for Ctrl-C), 141 the reader of a pipe left.
"""

import os
import sys
from importlib import import_module, metadata
from pathlib import Path

from . import help_page
from .config_folder import PACKAGE, SCRIPT, TRAINS, command_names, config_file, did_you_mean, nearest
from .errors import JobFailed, UserError
from .stop import Interrupted

ON_ALL_RANKS = ("doctor",)  # each looks at its own machine


def main() -> int:
    """Runs the command line in `sys.argv` and returns the exit code."""
    called_as = Path(sys.argv[0]).name
    program = f"python -m {PACKAGE}" if called_as == "__main__.py" else called_as
    try:
        _answer(program, sys.argv[1:])
        sys.stdout.flush()
    except UserError as error:
        if os.environ.get("HYDRA_FULL_ERROR") == "1":
            raise
        sys.stderr.write(f"{error}\n")
        return 2
    except JobFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except Interrupted as error:
        return 128 + error.signum
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        if not _reader_left():
            raise
        return 141
    return 0


def _answer(program: str, words: list[str]) -> None:
    name, *rest = words or ["--help"]
    if name in ("-h", "--help"):
        sys.stdout.write(help_page.overview(program))
    elif name == "--version":
        sys.stdout.write(f"{SCRIPT} {_version()}\n")
    elif name in ("-sc", "--shell-completion"):
        from . import completion

        completion.answer(rest)
    elif name not in command_names():
        raise UserError(
            f"{name} is no command.{did_you_mean(nearest(name, command_names()))} "
            f"Commands: {', '.join(command_names())}."
        )
    elif not {"-h", "--help"}.isdisjoint(rest):
        sys.stdout.write(help_page.command(program, name))
    else:
        sys.argv[:] = [f"{program} {name}", *rest]
        _run(name)


def _run(name: str) -> None:
    from . import ranks

    place = ranks.find_place()
    if place is not None and place.rank > 0 and name not in ON_ALL_RANKS:
        if name == TRAINS:
            ranks.follow(place.rank)
        else:
            cure = f"if there is no other, type: unset {' '.join(ranks.NEEDED)}"
            sys.stderr.write(f"rank {place.rank} of {place.world_size} leaves {name} to rank 0; {cure}\n")
        return
    try:
        if config_file(name) is None:
            sys.exit(import_module(f"{PACKAGE}.commands.{name}").main())
        from . import hydra_command

        hydra_command.run(name)
    finally:
        if place is not None and name == TRAINS:
            ranks.dismiss()


def _version() -> str:
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _reader_left() -> bool:
    """Whether nobody reads stdout any more, as after `| head`; if so, what is left to write goes nowhere."""
    try:
        os.write(sys.stdout.fileno(), b"\n")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False
