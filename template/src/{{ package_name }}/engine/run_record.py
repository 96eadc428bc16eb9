"""`run.json`, the record of one run: what it is, how it ended, what it reached."""

import json
import os
import time
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .errors import UserError

NAME = "run.json"


class RunRecord:
    """Claims a run directory and keeps its record; on other ranks than 0 it writes nothing.

    Raises:
        UserError: the directory is another run's.
    """

    def __init__(self, directory: Path, rank: int = 0, **facts: Any) -> None:
        self.path = directory / NAME
        self.rank = rank
        self.began = time.monotonic()
        self.facts: dict[str, Any] = {
            "status": "running",
            "started": datetime.now().astimezone().isoformat(timespec="microseconds"),
            **facts,
        }

    def __enter__(self) -> Self:
        if self.rank == 0:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self.path.touch(exist_ok=False)
            except FileExistsError:
                raise UserError(f"{self.path.parent} belongs to another run: choose a new directory") from None
            self._write()
        return self

    def update(self, **facts: Any) -> None:
        """Adds facts and writes the record."""
        self.facts |= facts
        if self.rank == 0:
            self._write()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            status = "finished"
        elif isinstance(error, (KeyboardInterrupt, SystemExit)):
            status = "interrupted"
        else:
            status = "failed"
            self.facts["error"] = f"{type(error).__name__}: {error}"
        self.update(status=status, seconds=round(time.monotonic() - self.began, 3))

    def _write(self) -> None:
        """Writes beside the record and renames: a reader never sees half of it."""
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        beside.write_text(json.dumps(self.facts, indent=2, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
        beside.replace(self.path)
