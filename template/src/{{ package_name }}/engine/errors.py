"""Exceptions whose message is all that the person at the keyboard needs."""

from typing import Any


class UserError(Exception):
    """A mistake in what was asked. Its message is one line: what is wrong, what was found, what to type instead."""

    def __str__(self) -> str:  # one from a process that loads data comes back with its traceback before it
        return super().__str__().rpartition(f"{type(self).__name__}: ")[2].strip()


class JobFailed(Exception):
    """Another process of the job failed. Its message is for the console: which one, and the traceback that it left.

    Args:
        message: All that is to be shown.
        reason: What happened, in one line.
    """

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason or message


class RunFailed(JobFailed):
    """A training ended for a reason that has a name. Its message is for the console; the traceback is in the log.

    Args:
        message: What happened, and what to type.
        status: What `run.json` calls it.
        facts: What `run.json` holds of it, plain data.
    """

    def __init__(self, message: str, status: str, facts: dict[str, Any]) -> None:
        super().__init__(message, message.partition("\n")[0])
        self.status = status
        self.facts = facts
