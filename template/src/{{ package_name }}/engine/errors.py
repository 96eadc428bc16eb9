"""The exception for everything that the person at the keyboard can put right."""


class UserError(Exception):
    """A mistake in what was asked. Its message is one line: what is wrong, what was found, what to type instead."""
