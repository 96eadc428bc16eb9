"""Checks in processes of their own: one that crashes or hangs loses only its own answer, and leaves nothing behind."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple

from .. import logs
from ..processes import fork_server
from .finding import one_line


class Task(NamedTuple):
    """A generator to run, its arguments, and the seconds that it may take."""

    run: Callable[..., Iterator[Any]]
    arguments: tuple[Any, ...] = ()
    seconds: int = 120


class Answer(NamedTuple):
    """What a task yielded, and why there is no more of it: empty where it came to its end."""

    values: list[Any]
    lost: str


def answers(tasks: list[Task]) -> Iterator[Answer]:
    """Runs tasks at once and gives their answers in the same order.

    Raises:
        EOFError, ConnectionError: the import of torch ended the server that forks processes.
    """
    server = fork_server([f"{__package__}.preload"])
    running: list[tuple[ForkServerProcess, Connection]] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        try:
            for task in tasks:
                receiving, sending = server.Pipe(duplex=False)
                process = server.Process(target=_live, args=(task, dict(os.environ), scratch, sending))
                process.start()
                sending.close()
                running.append((process, receiving))
            began = time.monotonic()
            for task, (process, receiving) in zip(tasks, running, strict=True):
                yield _collect(process, receiving, task.seconds, began)
        finally:
            for process, _ in running:
                process.kill()
                assert process.pid is not None
                with suppress(ProcessLookupError):  # what it started, such as a compiler
                    os.killpg(process.pid, signal.SIGKILL)
                process.join()


def _live(task: Task, environment: dict[str, str], scratch: str, sending: Connection) -> None:
    os.setpgid(0, 0)
    signal.alarm(task.seconds)  # ends it wherever it is
    os.environ |= environment | dict.fromkeys(("TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"), scratch)
    tempfile.tempdir = scratch
    logs.redirect_output(Path(scratch) / "output")
    try:
        for value in task.run(*task.arguments):
            sending.send((value, ""))
    except Exception as error:
        sending.send((None, one_line(error)))


def _collect(process: ForkServerProcess, receiving: Connection, seconds: int, began: float) -> Answer:
    values: list[Any] = []
    error = ""
    with suppress(EOFError):
        while receiving.poll(max(0.0, began + seconds + 5 - time.monotonic())):
            value, error = receiving.recv()
            values += [] if error else [value]
    process.join(timeout=1)
    if error:
        return Answer(values, error)
    if process.exitcode in (None, -signal.SIGALRM):
        return Answer(values, f"no answer within {seconds} s")
    return Answer(values, f"its process ended with exit code {process.exitcode}" if process.exitcode else "")
