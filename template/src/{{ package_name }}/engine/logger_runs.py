"""The ids that tracking services know a run by, kept in its directory: a run that goes on is the same one there."""

import json
from pathlib import Path

NAME = "logger_runs.json"


def kept_id(directory: Path, service: str) -> str | None:
    """The id of the run in `directory` at a service, once it has one."""
    return _read(directory).get(service)


def keep_id(directory: Path, service: str, run_id: str) -> None:
    """Writes the id down, for rank 0 to do."""
    directory.mkdir(parents=True, exist_ok=True)
    beside = directory / f".{NAME}"
    beside.write_text(json.dumps({**_read(directory), service: run_id}, indent=2) + "\n", encoding="utf-8")
    beside.replace(directory / NAME)


def _read(directory: Path) -> dict[str, str]:
    file = directory / NAME
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
