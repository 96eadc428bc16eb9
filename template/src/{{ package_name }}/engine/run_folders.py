"""Finding runs and checkpoints on the disk, without torch."""

from contextlib import suppress
from pathlib import Path

from .errors import UserError
from .run_record import NAME, read


def find_checkpoint(path: str | Path, preferred: tuple[str, ...] = ("best.ckpt", "last.ckpt")) -> Path:
    """The checkpoint that `path` means: a file, the first of `preferred` in a run, that of the newest run of a folder.

    `latest` is the newest run below `runs`.

    Raises:
        UserError: there is none.
    """
    is_latest = str(path) == "latest"
    path = Path("runs") if is_latest else Path(path)
    if not is_latest and not path.exists():
        raise UserError(f"{path} does not exist: name a run's directory, a checkpoint file, or latest")
    if path.is_file():
        return path
    for name in preferred:
        if (file := path / "checkpoints" / name).is_file():
            return file
    if (path / NAME).exists():
        raise UserError(f"{path} holds no checkpoints/{' or '.join(preferred)}: choose another run")
    return find_checkpoint(latest_run(path), preferred)


def latest_run(runs: Path) -> Path:
    """The directory of the run below `runs` that started last, among those that have a checkpoint."""
    started: list[tuple[str, Path]] = []
    for record in runs.rglob(NAME):
        if not any((record.parent / "checkpoints").glob("*.ckpt")):
            continue
        with suppress(UserError, KeyError):
            started.append((read(record.parent)["started"], record.parent))
    if not started:
        found = "holds no run with a checkpoint" if runs.exists() else "does not exist"
        raise UserError(f"{runs} {found}: train one first, or name a run's directory or a checkpoint file")
    return max(started)[1]


def options_of(run: Path) -> list[str]:
    """The overrides that a run was composed from, with those of Hydra's own keys that say where configs are found."""
    from omegaconf import OmegaConf

    own = [str(word) for word in OmegaConf.load(run / ".hydra" / "overrides.yaml")]
    file = run / ".hydra" / "hydra.yaml"
    hydra = OmegaConf.select(OmegaConf.load(file), "hydra.overrides.hydra", default=[]) if file.exists() else []
    return [*(str(word) for word in hydra if str(word).startswith("hydra.searchpath=")), *own]
