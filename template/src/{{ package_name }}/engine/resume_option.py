"""`resume=RUN` on the command line stands for the run's own options, its directory and its last checkpoint."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from .errors import UserError
from .path_options import quote_path_options
from .run_folders import find_checkpoint
from .run_record import NAME, read


def expand(words: list[str], is_sweep: bool) -> list[str]:
    """Puts the options of the run before those of the command line, which win; `auto` and `null` stay as they are.

    Raises:
        UserError: there is no such run, it has no checkpoint, or it is asked for in a sweep.
    """
    checkpoint = _named_checkpoint(words, is_sweep)
    if checkpoint is None:
        return words
    run = checkpoint.parent.parent
    options = run / ".hydra" / "overrides.yaml"
    if not (run / NAME).exists() or not options.exists():
        raise UserError(f"{checkpoint} lies in no run's directory: move it into one, or name another")
    given = [word for word in words if _key(word) != "resume"]
    replaced = {"resume", "resume_schedule", "init_from", "hydra.run.dir", *map(_key, given)}
    own = [str(word) for word in OmegaConf.load(options)]
    place = quote_path_options([f"paths.run={run}", f"resume={checkpoint}"])
    return [
        *(word for word in own if _key(word) not in replaced),
        *given,
        place[0].replace("paths.run", "hydra.run.dir", 1),
        place[1],
    ]


def _named_checkpoint(words: list[str], is_sweep: bool) -> Path | None:
    """The absolute path of the checkpoint that `resume=` on the command line means, unless it is `auto` or `null`."""
    values = [word.partition("=")[2].strip("'\"") for word in words if _key(word) == "resume"]
    if not values or values[-1] in ("auto", "null", ""):
        return None
    if is_sweep:
        raise UserError(f"resume={values[-1]} goes on with one run: leave out -m")
    return find_checkpoint(values[-1], ("last.ckpt",)).absolute()


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
        if _key(word) in ("hydra.run.dir", "hydra.sweep.dir"):
            directory = Path(str(OverridesParser.create().parse_override(word).value()))
            yield from (file.parent for file in (*directory.glob(NAME), *directory.glob(f"*/{NAME}")))


def _trained_by(run: Path) -> Any:
    with suppress(UserError):  # who goes on with a damaged run is told so
        return read(run).get("process")
    return None


def _options(run: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in (run / ".hydra").glob("*.yaml")}


def _key(word: str) -> str:
    return word.partition("=")[0].lstrip("+~")


def resumed_checkpoint(run: Path, value: str | None) -> Path | None:
    """The checkpoint that the config's `resume` means; None where the run begins."""
    last = run / "checkpoints" / "last.ckpt"
    if value == "auto":
        return last if last.exists() else None
    return None if value is None else Path(value)
