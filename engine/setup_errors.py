"""Errors that prevent a process from working."""

from protocol.errors import Refusal


class SetupError(Refusal):
    """A part of the environment is missing or invalid: an address, a key, a folder, a program.

    The message is one line: which, why and what to do. It never contains a key.
    """


TOO_EARLY = "a query came with events of no workflow task; ask again"
"""Reason of a refused query: the job has new events whose workflow task has not started."""
