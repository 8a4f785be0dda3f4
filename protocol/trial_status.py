"""How a trial and its runs stand."""

from collections import Counter
from typing import Literal

from pydantic import Field

from protocol.data_model import Data
from protocol.usage import Usage

RunStatus = Literal[
    "pending", "running", "completed", "failed", "cancelled", "late", "cut", "unstarted"
]
"""`cut`: a limit of the whole trial ended the run. `unstarted`: a limit or a cancellation kept it
from its start."""


class TrialRun(Data):
    """One job of a trial."""

    job: str
    configuration: str
    status: RunStatus = "pending"
    reason: str = ""
    seconds: float = 0.0
    phases: int = 0
    rewinds: int = 0
    usage: Usage | None = None
    """Unknown to the trial for a run that did not complete."""
    waiting: str = ""
    """Why it waits for a person, or waited when it was ended."""
    has_share: bool = False
    """Whether its limits are a share of the trial's."""


class WatchTrialReply(Data):
    waiting: dict[str, str] = Field(default_factory=dict)
    """Jobs with the reason of their wait."""


def trial_progress_line(runs: list[TrialRun]) -> str:
    """`3 of 8 runs ended, 2 running (1 waiting for a person), 3 to begin`."""
    counts = Counter(run.status for run in runs)
    open_runs = counts["pending"] + counts["running"] + counts["unstarted"]
    parts = [f"{len(runs) - open_runs} of {len(runs)} runs ended"]
    if counts["running"]:
        at_work = [run for run in runs if run.status == "running"]
        waits = {
            "paused": sum(run.waiting == "paused" for run in at_work),
            "waiting for a person": sum(run.waiting not in ("", "paused") for run in at_work),
        }
        more = ", ".join(f"{count} {what}" for what, count in waits.items() if count)
        parts.append(f"{counts['running']} running" + (f" ({more})" if more else ""))
    if counts["pending"]:
        parts.append(f"{counts['pending']} to begin")
    if counts["unstarted"]:
        parts.append(f"{counts['unstarted']} not begun")
    return ", ".join(parts)
