"""What workflow code needs to know about a tool to route its calls."""

from protocol.data_model import Data
from protocol.phase import PhaseKind

READ_LINES = 500


class ToolRoute(Data):
    """How calls of one tool are run; built from the registry and pinned when a job starts."""

    name: str
    phases: list[PhaseKind]
    local: bool
    """Whether it runs as a local activity: for bounded work on the checkpoint alone."""
    seconds: int
    polling: bool = False
    """Whether it polls: a repeated call does not count as repetition while its result changes."""
    guarded: bool = False
    """For calls that the workflow acts on before the tool runs: whether guards or hooks check them
    first."""
    bounded_checks: bool = False
    """For the end of a phase: whether its gate and guards only read the checkpoint, so that they
    run as local activities."""
