"""What a failed activity means for the job: a pure reading of Temporal's failures."""

from __future__ import annotations

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    TimeoutError,
)

from protocol.record import Waiting, WaitReason

REMEDIES: dict[str, tuple[WaitReason, str]] = {
    "Credentials": ("credentials", "Set a valid key or model in the worker, then resume the job."),
    "Endpoint": ("endpoint", "Check the model endpoint, then resume the job."),
    "ModelRefused": ("endpoint", "Check the request against the endpoint, then resume the job."),
    "Storage": ("storage", "Free space or mend the workspaces root, then resume the job."),
    "WrongRoot": ("storage", "Start a worker on the job's own root, then resume the job."),
}
OTHERWISE: tuple[WaitReason, str] = (
    "tool",
    "Look into errors/ in the workspace; resume tries again, rewind starts the phase anew.",
)
PAUSED = Waiting(
    reason="paused",
    message="Paused by a person.",
    remedy="Edit files if you like, then send the signal resume.",
)
REWINDS = Waiting(
    reason="rewinds",
    message="The agent wants to rewind once more and has used up its rewinds.",
    remedy="Resume grants one more; rewind with an issue of your own; or cancel.",
)
CALLS = Waiting(
    reason="budget",
    message="The phase has used up its model calls.",
    remedy="Resume grants as many again; rewind with an issue of your own; or cancel.",
)


def kind_of(error: ActivityError) -> str:
    """The typed failure's word (`activities.failures`), or another word for what it was."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        return cause.type or "Unknown"
    if isinstance(cause, CancelledError):
        return "Cancelled"
    return "Timeout" if isinstance(cause, TimeoutError) else "Unknown"


def message_of(error: ActivityError) -> str:
    """What the activity said, bounded."""
    return str(getattr(error.cause, "message", None) or error.cause or error)[:500]


def waiting_for(error: ActivityError) -> Waiting:
    """How the job waits after this failure."""
    reason, remedy = REMEDIES.get(kind_of(error), OTHERWISE)
    return Waiting(
        reason=reason, message=f"{error.activity_type}: {message_of(error)}", remedy=remedy
    )
