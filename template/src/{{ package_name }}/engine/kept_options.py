"""What `.hydra/` says of a run stays true when a command that would change it is refused."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser

from .errors import UserError
from .run_record import NAME, read


@contextmanager
def options_kept(words: list[str]) -> Generator[None]:
    """Gives runs back the options that Hydra has overwritten for a command whose processes never came to train them.

    Hydra writes those of a command into `hydra.run.dir`, or below `hydra.sweep.dir`, before anything can be refused.
    """
    before = [(run, _trained_by(run), _options(run)) for run in _runs_named(words)]
    try:
        yield
    finally:
        for run, process, options in before:
            if _trained_by(run) == process:
                for file, content in options.items():
                    if file.read_bytes() != content:
                        file.write_bytes(content)


def _runs_named(words: list[str]) -> Iterator[Path]:
    for word in words:
        if word.startswith(("hydra.run.dir=", "hydra.sweep.dir=")):
            directory = Path(str(OverridesParser.create().parse_override(word).value()))
            yield from (file.parent for file in (*directory.glob(NAME), *directory.glob(f"*/{NAME}")))


def _trained_by(run: Path) -> Any:
    with suppress(UserError):  # who goes on with a damaged run is told so
        return read(run).get("process")
    return None


def _options(run: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in (run / ".hydra").glob("*.yaml")}
