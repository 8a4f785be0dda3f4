"""What workflow code knows of a tool: enough to route a call, nothing of what it does."""

from __future__ import annotations

from protocol.state import Data, PhaseKind

READ_LINES = 500
"""Lines that `read_file` shows by default."""


class ToolRoute(Data):
    """How calls of one tool are run. Made from the registry and pinned when a job starts."""

    name: str
    phases: list[PhaseKind]
    local: bool
    """Run as a local activity: for bounded work on the checkpoint alone."""
    seconds: int
    """Time limit of one attempt."""
    polling: bool = False
    """Calling it again is no repetition while its result changes."""
    guarded: bool = False
    """For calls that the workflow acts on before a tool is run: whether guards or hooks are asked
    then."""
