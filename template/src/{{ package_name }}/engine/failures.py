"""Which process of a job failed first, and how: the others only see that it no longer answers."""

import json
import re
import signal
import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from .errors import JobFailed, RunFailed, UserError
from .logs import file_name
from .stop import REPORTS, Interrupted

# What a rank says that waited in vain for another one. A rank with a failure of its own is the one to blame.
NO_ANSWER = re.compile(r"timed? ?out", re.IGNORECASE)
CUT_OFF = re.compile(r"gloo|nccl|connection (was )?(closed|reset|refused)|broken pipe", re.IGNORECASE)
PATIENCE = 2.0  # seconds in which other ranks notice that one has failed


class Failure(NamedTuple):
    """How a rank ended, in its own words.

    Attributes:
        rank: Its rank in the job.
        when: Seconds since 1970.
        error: Type and message.
        traceback: All of it.
        status, facts: Those of a `RunFailed`.
    """

    rank: int
    when: float
    error: str
    traceback: str
    status: str = ""
    facts: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it

    @property
    def is_echo(self) -> bool:
        """Whether it only noticed that another rank did not answer."""
        return bool(NO_ANSWER.search(self.error) or CUT_OFF.search(self.error))

    @property
    def is_interruption(self) -> bool:
        """Whether a signal ended it."""
        return self.error.startswith(f"{Interrupted.__name__}: ")


def report(folder: Path, rank: int, error: BaseException) -> Failure:
    """Writes down how this rank failed, before it ends and the others notice."""
    text = "".join(traceback.format_exception(error)).rstrip()
    failure = Failure(rank, time.time(), f"{type(error).__name__}: {error}", text)
    if isinstance(error, RunFailed):
        failure = failure._replace(status=error.status, facts=error.facts)
    draft = folder / f".draft-{rank}"
    draft.write_text(json.dumps(failure), encoding="utf-8")
    draft.replace(folder / REPORTS.replace("*", str(rank)))
    return failure


def collect(folder: Path) -> list[Failure]:
    """The reports in a folder, the first failure first."""
    reports = (Failure(*json.loads(file.read_text(encoding="utf-8"))) for file in folder.glob(REPORTS))
    return sorted(reports, key=lambda failure: failure.when)


def wait_for_all(folder: Path, world_size: int) -> None:
    """Gives the other ranks time to report."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and len(collect(folder)) < world_size:
        time.sleep(0.1)


def first_failure(
    folder: Path, world_size: int, exit_codes: dict[int, int]
) -> tuple[int, UserError | JobFailed | Interrupted]:
    """The rank that failed first, and what to raise for it.

    Args:
        folder: Where the ranks reported.
        world_size: How many ranks the job had.
        exit_codes: Of the ranks that were seen to end; -n means that signal n killed it.
    """
    reports = collect(folder)
    silent = sorted(set(range(world_size)) - {failure.rank for failure in reports})
    was_killed = any(exit_codes.get(rank) for rank in silent)
    for place, failure in enumerate(reports):
        # once a rank has failed, the launcher ends the others by a signal
        is_consequence = failure.is_interruption and (was_killed or place > 0)
        if not failure.is_echo and not is_consequence:
            return failure.rank, _own_failure(failure, _who(failure.rank, world_size))
    if not silent:
        return reports[0].rank, _own_failure(reports[0], _who(reports[0].rank, world_size))
    rank = next(iter([rank for rank in silent if rank in exit_codes] or silent))
    who = _who(rank, world_size)
    if (code := exit_codes.get(rank, 0)) < 0:
        out_of_memory = ", as the system does when memory runs out" if code == -9 else ""
        return rank, JobFailed(f"{who} was killed by signal {-code}{out_of_memory}")
    if reports and NO_ANSWER.search(reports[0].error):
        log = file_name(rank)
        return rank, JobFailed(
            f"{who} hung: rank {reports[0].rank} waited for it in vain. What it was doing stands at the end of {log}"
        )
    return rank, JobFailed(f"{who} ended without a word: killed, perhaps because memory ran out")


def _own_failure(failure: Failure, who: str) -> UserError | JobFailed | Interrupted:
    kind, _, text = failure.error.partition(": ")
    if kind == UserError.__name__:
        return UserError(text)
    if failure.status:
        return RunFailed(text, failure.status, failure.facts)
    if kind == Interrupted.__name__:
        return Interrupted(signal.Signals[text])
    return JobFailed(f"{who} failed\n\n{failure.traceback}", failure.error)


def _who(rank: int, world_size: int) -> str:
    return f"rank {rank}" if world_size > 1 else "the process of this trial"
