"""Why a job, project or trial waits, and what a person can do about it."""

from typing import Literal

from pydantic import Field

from protocol.data_model import Data
from protocol.short_text import shell_quoted

WaitReason = Literal[
    "clarification",
    "approval",
    "review",
    "stuck",
    "rewinds",
    "budget",
    "credentials",
    "endpoint",
    "tool",
    "storage",
    "dependency",
    "quota",
    "paused",
]

QUOTA: WaitReason = "quota"
"""The only one that no person needs to attend to."""

_WAITING = "waiting: "
WAITING_PREFIX = _WAITING.strip()
"""How the status of what waits begins in memo and search attribute, for queries."""


def status_value(status: str, reason: str | None) -> str:
    """Return a status as memo and search attribute have it: `running`, or `waiting: budget`."""
    return f"{_WAITING}{reason}" if reason else status


def read_status_value(value: str) -> tuple[str, str]:
    return ("waiting", value[len(_WAITING) :]) if value.startswith(_WAITING) else (value, "")


class WaitState(Data):
    """Why a job waits, and what a person should do about it, in one sentence.

    `JOB` in remedy and command stands for the id of the job until `of_job` fills it in.
    """

    reason: WaitReason
    message: str
    remedy: str
    command: str = ""
    """The command that lets it go on, as people type it."""
    limit: str = ""
    """For the reason `budget`: the key of the job's own limit that is used up."""
    about: dict[str, str] = Field(default_factory=dict)
    """Text of the agent that people must see verbatim."""
    trying: bool = False
    """Whether the job keeps retrying on its own meanwhile."""

    def of_job(self, job_id: str) -> "WaitState":
        """Return it with the job's id, so that its commands can be pasted."""
        command = self.command or f"starter.py {'show' if self.trying else 'resume'} JOB"
        named = f" {shell_quoted(job_id)}"
        return self.model_copy(
            update={
                "command": command.replace(" JOB", named),
                "remedy": self.remedy.replace(" JOB", named),
            }
        )


class WaitTimer(Data):
    """A running `wait`, in epoch seconds."""

    started: float
    ends: float

    @property
    def seconds(self) -> int:
        return round(self.ends - self.started)
