"""What a failed activity means for the job, from Temporal's failures alone."""

from __future__ import annotations

from datetime import timedelta

from temporalio.exceptions import ActivityError, ApplicationError, FailureError, TimeoutError

from protocol.errors import Interruption
from protocol.failure_details import BY_FALLBACK, read_mend_detail, read_unfinished_detail
from protocol.short_text import one_line
from protocol.usage import Usage
from protocol.waiting import WaitReason, WaitState

OTHER_MODEL = (
    "then resume the job; `starter.py resume JOB --set model.name=…` gives it another model, "
    "model.base_url another address."
)
REMEDIES: dict[str, tuple[WaitReason, str]] = {
    "Credentials": (
        "credentials",
        f"Give the worker a valid key, or have the endpoint offer the model, {OTHER_MODEL}",
    ),
    "Endpoint": ("endpoint", "Check the model endpoint, then resume the job."),
    "ContextTooLong": (
        "endpoint",
        "Compacting makes the request no shorter: pause the job, shorten instructions.md or "
        "workspace.md and rewind; or resume it with a model of a larger window, "
        "`starter.py resume JOB --set model.name=…`.",
    ),
    "ModelRefused": ("endpoint", "Check the request against the endpoint, then resume the job."),
    "Dependency": ("dependency", "Bring back what it names, then resume the job."),
    "BranchMoved": (
        "dependency",
        "Rename or delete that branch at the remote, then resume; or cancel: the work is kept as a "
        "branch and a patch.",
    ),
    "StoreUnavailableError": ("dependency", "Bring back what it names"),
    "Storage": ("storage", "Free space or mend the workspaces root, then resume the job."),
    "CheckpointMissing": (
        "storage",
        "Put the folder .longhaul/checkpoints back from a backup, then resume the job; or rewind "
        "to a phase whose start is there.",
    ),
    "NewerVersion": (
        "tool",
        "Update the workers of the earlier version, or stop them, then resume the job.",
    ),
    "WrongRoot": ("storage", "Start a worker on the job's own root, then resume the job."),
}
OTHERWISE: tuple[WaitReason, str] = (
    "tool",
    "Look into errors/ in the workspace; resume tries again, rewind starts the phase anew.",
)
PAUSED = WaitState(
    reason="paused",
    message="Paused by a person.",
    remedy="Edit its files if you like, then resume the job.",
)


def paused_activity_wait(by: str, calls_left: str = "") -> WaitState:
    """Return the wait of a pause.

    Args:
        by: Who paused; empty if unknown.
        calls_left: Calls of the last reply whose results are not in the folder yet.
    """
    message = f"Paused by {by}." if by else PAUSED.message
    if calls_left:
        message += f" {calls_left}."
    return PAUSED.model_copy(update={"message": message})


REWINDS = WaitState(
    reason="rewinds",
    message="The agent wants to rewind once more and has used up its rewinds.",
    remedy="Resume grants one more; rewind with an issue of your own; or cancel.",
)
STORE = WaitState(
    reason="dependency",
    message="The store does not answer, and the job's last traces are not in it.",
    remedy="Bring back the store (LONGHAUL_STORE_URL), then resume the job.",
)


def review_wait(findings: str) -> WaitState:
    """Return how a job waits whose review has sent it back again and again."""
    return WaitState(
        reason="review",
        message=f"The review has not accepted the job. {one_line(findings, MOST_SAID)}",
        remedy="Resume lets the agent go on, rewind with an issue of your own tells it how, or "
        "cancel.",
    )


def judge_wait(refusal: str) -> WaitState:
    """Return how a job waits whose judge has refused the end of the phase again and again."""
    return WaitState(
        reason="review",
        message=f"The judge does not let the phase end. {one_line(refusal, MOST_SAID)}",
        remedy="Resume lets the agent go on, bypass judge and resume lets the phase end, rewind "
        "with an issue of your own tells it how, or cancel.",
    )


TRY_AGAIN = timedelta(seconds=30)
"""How long a job leaves an endpoint alone that names no time itself."""
MOST_SAID = 500
MOST_CAUSES = 5
LONGEST = timedelta(minutes=10)
"""Longest delay between two attempts of a start: a day of them must fit into its history."""


class StepFailed(Interruption):
    """An activity failed for good.

    Temporal wraps the failure of a regular activity but not of a local one; here both are the same.
    """

    def __init__(self, step: str, error: FailureError) -> None:
        cause = error.cause if isinstance(error, ActivityError) and error.cause else error
        self.step = step
        self.delay = TRY_AGAIN
        """When to retry a temporary failure."""
        self.message = str(getattr(cause, "message", None) or cause)[:MOST_SAID]
        self.causes = _activity_failure_causes(cause)
        """The chain of causes, one line each."""
        self.by_fallback = False
        """Whether a fallback refused, and not the model itself."""
        self.mend = ""
        """What a person can mend, if the failure says so."""
        self.unfinished = Usage()
        """What replies that broke off have used, without its cost."""
        if isinstance(cause, ApplicationError):
            self.kind = cause.type or "Unknown"
            if cause.details and isinstance(cause.details[0], (int, float)):
                self.delay = timedelta(seconds=cause.details[0])
            self.by_fallback = BY_FALLBACK in cause.details
            self.mend = read_mend_detail(cause.details)
            self.unfinished = read_unfinished_detail(cause.details)
        else:
            self.kind = "Timeout" if isinstance(cause, TimeoutError) else "Unknown"
        """The typed failure's word (`activities.runtime.failures`), or another word for "
        "what it was."""
        super().__init__(f"{step}: {self.message}")


def _activity_failure_causes(error: BaseException | None) -> list[str]:
    causes: list[str] = []
    while error is not None and len(causes) < MOST_CAUSES:
        kind = getattr(error, "type", None) or type(error).__name__
        causes.append(f"{kind}: {getattr(error, 'message', None) or error}"[:MOST_SAID])
        error = error.__cause__
    return causes


def wait_after_failure(failed: StepFailed) -> WaitState:
    """Return how the job waits after this failure."""
    reason, remedy = REMEDIES.get(failed.kind, OTHERWISE)
    if failed.mend:
        remedy = f"{failed.mend}, {OTHER_MODEL}"
    return WaitState(reason=reason, message=str(failed), remedy=remedy)


def store_unavailable_wait(lacking: str) -> StepFailed:
    """Return how a job waits that could end if its store answered."""
    return StepFailed("job_complete", ApplicationError(f"{lacking}.", type="StoreUnavailableError"))


def verdict_failure_wait(guard: str, tool: str, why: str, count: int) -> WaitState:
    """Return how the job waits for a verifier or hook that keeps failing itself."""
    return WaitState(
        reason="dependency",
        message=f"{guard} has kept {tool} back {count} times without a verdict. "
        f"{one_line(why, MOST_SAID)}",
        remedy=f"Mend {guard}, or what it needs, then resume the job: the call comes up again. "
        f"`starter.py bypass JOB {guard}` before that lets it pass once.",
    )


def closing_failure_wait(failed: StepFailed) -> WaitState:
    """Return how a cancelled job waits whose result could not be written."""
    remedy = (
        "Mend what it names, then resume: closing is tried again. To end it without a result, "
        "cancel the workflow through Temporal."
    )
    return wait_after_failure(failed).model_copy(update={"remedy": remedy})


def start_failure_wait(failed: StepFailed) -> WaitState:
    """Return how a start waits for a dependency while it keeps trying."""
    mend = {
        "WrongRoot": "Start a worker on that root",
        "Storage": "Free space or mend the workspaces root",
    }.get(failed.kind, "Bring it back")
    remedy = f"{mend}; the start tries again by itself, resume tries at once, cancel ends it."
    reason, _ = REMEDIES[failed.kind]
    return WaitState(reason=reason, message=str(failed), remedy=remedy, trying=True)


def temporary_failure_wait(failed: StepFailed) -> WaitState:
    """Return how the job waits for an unavailable endpoint or store while it keeps trying."""
    reason, remedy = REMEDIES[failed.kind]
    mend = remedy.partition(",")[0]
    remedy = f"{mend}; the job goes on trying by itself, resume tries at once."
    return WaitState(reason=reason, message=str(failed), remedy=remedy, trying=True)


def is_called_workflow_gone(error: FailureError) -> bool:
    """Whether the target of a signal is a closed workflow."""
    return getattr(error, "type", None) == "ExternalWorkflowExecutionNotFound"
