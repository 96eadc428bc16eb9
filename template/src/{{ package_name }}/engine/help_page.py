"""Help pages, written from docstrings and from the folder of configs."""

import ast
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable

from .config_folder import COMMANDS, SCRIPT, TRAINS, command_names, config_file, groups, keys, options

_FLAGS = [
    ("-m", "run every combination of the values that stand between commas, as in key=1,2"),
    ("--cfg job", "print the composed config and stop; with --resolve, its interpolations filled in"),
    ("--info defaults", "print where the config comes from and stop"),
    ("--hydra-help", "print Hydra's own flags"),
]


def overview(program: str) -> str:
    """The commands with a line each."""
    rows = [(name, _docstring(name).partition("\n")[0]) for name in command_names()]
    return "\n".join(
        [
            f"usage: {program} COMMAND ...",
            "",
            _heading("Commands"),
            *_table(rows),
            "",
            f"{program} COMMAND --help says more.",
            f'eval "$({SCRIPT} -sc install=bash)" completes them, their groups and options with TAB.',
            "",
        ]
    )


def command(program: str, name: str) -> str:
    """One command: what it does, its groups, its keys."""
    text = _docstring(name).replace("{prog}", f"{program} {name}")
    config = config_file(name)
    if config is None:
        return f"usage: {program} {name} ...\n\n{text}\n"
    sections = [
        f"usage: {program} {name}{' [GROUP=OPTION ...]' if groups(name) else ''} [KEY=VALUE ...] [FLAG ...]",
        text,
    ]
    if groups(name):
        rows = [
            (f"{'*' if option in defaults else ' '} {group}={option}", comment)
            for group, defaults in groups(name).items()
            for option, comment in options(group).items()
        ]
        sections.append(_section("Groups (* by default)", rows))
    sections += [_section("Keys", keys(config).items()), _section("Flags", _FLAGS if name == TRAINS else _FLAGS[1:])]
    return "\n\n".join(sections) + "\n"


def _docstring(name: str) -> str:
    source = (COMMANDS / f"{name}.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


def _section(title: str, rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join([_heading(title), *_table(list(rows))])


def _heading(title: str) -> str:
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return f"\033[1m{title}\033[0m" if colour else title


def _table(rows: list[tuple[str, str]]) -> list[str]:
    """Two columns; a long text goes on below itself, a long name has its text on the next line."""
    width = min(max(shutil.get_terminal_size().columns, 80), 120)
    column = min(max(len(name) for name, _ in rows), 32) + 4
    lines: list[str] = []
    for name, text in rows:
        first = f"  {name}".ljust(column) if len(name) + 4 <= column else f"  {name}\n{' ' * column}"
        lines += [(first + ("\n" + " " * column).join(textwrap.wrap(text, width - column))).rstrip()]
    return lines
