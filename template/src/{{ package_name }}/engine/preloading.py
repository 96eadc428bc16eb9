"""Which libraries a job's own modules import: they are imported once, before the processes of jobs are forked."""

import ast
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .config import Config, flat
from .config_folder import PACKAGE

SOURCES = Path(__file__).parents[2]


def libraries(config: Config) -> list[str]:
    """The modules that those of the config's targets import, where they are the project's; read, not imported.

    The project's own modules are imported by each process anew: what they do to a GPU cannot be forked.
    """
    targets = {str(value).rpartition(".")[0] for key, value in flat(config).items() if key.endswith("_target_")}
    files = [SOURCES / f"{name.replace('.', '/')}.py" for name in targets if name.partition(".")[0] == PACKAGE]
    return sorted({name for file in files if file.is_file() for name in _imports(file)})


def _imports(file: Path) -> Iterator[str]:
    with suppress(SyntaxError):  # the job tells
        for node in ast.parse(file.read_bytes()).body:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                yield node.module
