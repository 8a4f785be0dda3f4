"""How a trial and its runs stand."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import Field

from protocol.data_model import Data
from protocol.trial_start import TrialStart
from protocol.usage import Usage
from protocol.waiting import WaitState

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
    """Why it did not complete."""
    seconds: float = 0.0
    phases: int = 0
    rewinds: int = 0
    usage: Usage | None = None
    """Unknown to the trial for a run that did not complete."""
    waiting: str = ""
    """Why it waits for a person, or waited when it was ended."""
    share: dict[str, float] = Field(default_factory=dict)
    """What it may use of the trial's limits, by key; empty without limits."""
    lowered: dict[str, float] = Field(default_factory=dict)
    """The smaller share that it was sent because it waits, until it says that it has taken it."""
    released: bool = False
    """Whether it waits for a person and holds no more of its share than it has used."""
    needs: dict[str, float] = Field(default_factory=dict)
    """How large its share has to be for its next call, by key; empty unless it waits for that."""
    interrupted: bool = False
    """Whether it was ended amid a step, so that its last call may be missing in its use."""


class TrialStatus(Data):
    """How a trial stands: its query, and its result."""

    trial: Literal[True] = True
    """Distinguishes it from the status of a job."""
    agent: str = "trial"
    title: str
    status: Literal["running", "waiting", "completed", "cancelled"]
    start: TrialStart
    reached: str = ""
    """The limit that ended the trial, in a sentence."""
    cancellation: str = ""
    """Who cancelled the trial and why, in a sentence; empty if nobody did."""
    waiting: WaitState | None = None
    """That a person has paused it."""
    notices: list[str] = Field(default_factory=list)
    """Signals that were refused or that changed it, newest last, for people."""
    runs: list[TrialRun]


class WatchTrialRequest(Data):
    """Watches the runs of a trial until they differ from what the trial says of them."""

    lost: list[str] = Field(default_factory=list)
    """Ended jobs that cannot say what they used."""


class WatchTrialReply(Data):
    """How a trial's runs stand."""

    waiting: dict[str, str] = Field(default_factory=dict)
    """Jobs that wait for a person, with the reason."""
    needs: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Jobs that wait for a larger share, with its size by key."""
    idle: dict[str, dict[str, float]] = Field(default_factory=dict)
    """What jobs that wait have used of each limit, by key; only once they have taken the newest
    share that they were sent."""
    usages: dict[str, Usage] = Field(default_factory=dict)
    """What ended jobs have used whose result does not say so."""
    lost: list[str] = Field(default_factory=list)
    """Ended jobs that cannot say what they used."""


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
            "waiting for a share of the limits": sum(bool(run.needs) for run in at_work),
        }
        more = ", ".join(f"{count} {what}" for what, count in waits.items() if count)
        parts.append(f"{counts['running']} running" + (f" ({more})" if more else ""))
    if counts["pending"]:
        parts.append(f"{counts['pending']} to begin")
    if counts["unstarted"]:
        parts.append(f"{counts['unstarted']} not begun")
    return ", ".join(parts)
