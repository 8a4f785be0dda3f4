"""What keeps a process of ours from its work."""

from protocol.errors import Refusal


class SetupError(Refusal):
    """What the environment gives cannot be used, or is not there: an address, a key, a folder, a
    program. One line: which, why and what to do; never a key."""


TOO_EARLY = "a query came with events of no workflow task; ask again"
"""Why a worker answers no query for the moment: the job has news, and its task is on the way."""
