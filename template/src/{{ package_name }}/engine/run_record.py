"""`run.json`, the record of one run: what it is, how it ended, what it reached."""

import fcntl
import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .alive import is_alive, this_process
from .errors import JobFailed, RunFailed, UserError
from .stop import Interrupted

NAME = "run.json"
# when a run goes on
KEPT = ("started", "init_from", "epochs", "steps", "monitor", "best_score", "best_checkpoint", "normalisation")


@contextmanager
def claimed(directory: Path, may_go_on: bool) -> Generator[None]:
    """Makes a run directory this job's, before any process of it starts and until all have ended.

    A run that was to go on, and was refused before its first step, keeps the record that it had.

    Raises:
        UserError: it is another run's, which this job may not go on with, or a process is still busy with it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory):
        if is_running(before := read(directory)):
            raise _busy(directory)
        try:
            (directory / NAME).touch(exist_ok=may_go_on)
        except FileExistsError:
            raise UserError(
                f"{directory} belongs to another run: choose a new directory, or type resume=auto to go on with that"
            ) from None
        try:
            yield
        except UserError:
            if before and read(directory).get("steps") == before.get("steps"):
                with suppress(OSError):  # where the disk is full, the error says so
                    _write(directory, before)
            raise


@contextmanager
def locked(directory: Path) -> Generator[None]:
    """Keeps other commands from a directory; the system gives the lock back when this process ends, however it ends.

    Raises:
        UserError: another command is busy there.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    _locks.add(descriptor)
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _busy(directory) from None
        yield
    finally:
        _locks.discard(descriptor)
        os.close(descriptor)


_locks: set[int] = set()


def _let_go() -> None:
    """In a forked process, such as one that loads data: it outlives a killed run, and must not keep the run's lock."""
    for descriptor in _locks:
        os.close(descriptor)
    _locks.clear()


os.register_at_fork(after_in_child=_let_go)


def _busy(directory: Path) -> UserError:
    record = read(directory)
    who = f"process {record['process']['pid']}" if is_running(record) else "another command"
    return UserError(f"{directory} is still being trained, by {who}: wait, or end that first")


class RunRecord:
    """Keeps the record of a run while it lasts; on other ranks than 0 it writes nothing."""

    def __init__(self, directory: Path, rank: int = 0, **facts: Any) -> None:
        self.directory = directory
        self.rank = rank
        before = read(directory)
        self.began = time.monotonic() - before.get("seconds", 0.0)
        now = datetime.now().astimezone().isoformat(timespec="microseconds")
        self.facts: dict[str, Any] = {"status": "running", "started": now, "process": this_process(), **facts}
        if before:  # the run goes on
            self.facts |= {key: before[key] for key in KEPT if key in before}
            self.facts["resumed"] = [*before.get("resumed", []), now]

    def __enter__(self) -> Self:
        if self.rank == 0:
            for draft in self.directory.glob(f".{NAME}.*"):  # of a process that was killed while it wrote
                draft.unlink()
        self.update()
        return self

    def update(self, **facts: Any) -> None:
        """Adds facts and the seconds that the run has lasted until now, and writes the record."""
        self.facts |= {**facts, "seconds": round(time.monotonic() - self.began, 3)}
        if self.rank == 0:
            _write(self.directory, self.facts)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.update(status="finished")
            return
        how = _how(error)
        with suppress(OSError):  # where the disk is full, `error` says so
            if "failed_rank" in (known := read(self.directory)):  # another rank knew more
                how = {key: known[key] for key in ("status", "error", "failed_rank") if key in known}
            self.update(**how)


def mark(directory: Path, error: BaseException, rank: int | None = None) -> None:
    """Corrects the record of a run whose rank 0 could not know, or could not say any more, how the run ended."""
    facts = {key: fact for key, fact in read(directory).items() if key not in ("error", "signal")}
    _write(directory, facts | _how(error) | ({} if rank is None else {"failed_rank": rank}))


def read(directory: Path) -> dict[str, Any]:
    """The record as it stands; empty before rank 0 has begun to write.

    Raises:
        UserError: the file is damaged.
    """
    file = directory / NAME
    try:
        record = json.loads((file.exists() and file.read_text(encoding="utf-8")) or "{}")
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise UserError(f"{file} is damaged: mend it, or begin a new run with init_from={directory}")
    return record


def is_running(record: dict[str, Any]) -> bool | None:
    """Whether a run of this host is being trained now; None where it began on another host, which cannot be asked.

    A run that was killed could not correct its record, which still says `running`.
    """
    if record.get("status") != "running" or "process" not in record:
        return False
    return is_alive(record["process"])


def _how(error: BaseException) -> dict[str, Any]:
    if isinstance(error, (Interrupted, KeyboardInterrupt, SystemExit)):
        return {"status": "interrupted", "signal": str(error)}
    if isinstance(error, RunFailed):
        return {"status": error.status, "error": error.reason, error.status: error.facts}
    if isinstance(error, JobFailed):
        return {"status": "failed", "error": error.reason}
    return {"status": "failed", "error": f"{type(error).__name__}: {error}"}


def _write(directory: Path, facts: dict[str, Any]) -> None:
    """Writes beside the record and renames: a reader never sees half of it."""
    beside = directory / f".{NAME}.{os.getpid()}"
    beside.write_text(json.dumps(facts, indent=2, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
    beside.replace(directory / NAME)
