"""Exceptions whose message is all that the person at the keyboard needs."""


class UserError(Exception):
    """A mistake in what was asked. Its message is one line: what is wrong, what was found, what to type instead."""


class JobFailed(Exception):
    """Another process of the job failed. Its message is for the console: which one, and the traceback that it left.

    Args:
        message: All that is to be shown.
        reason: What happened, in one line.
    """

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason or message
