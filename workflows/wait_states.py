"""Why a job waits, and what a person can do about it, in the words that people read."""

from __future__ import annotations

from protocol.short_text import one_line
from protocol.waiting import WaitReason, WaitState
from workflows.activity_failures import MOST_SAID, StepFailed

OTHER_MODEL = (
    "then resume the job; `starter.py resume JOB --set model.name=…` gives it another model, "
    "model.base_url its address."
)
OTHER_BRANCH = (
    "`starter.py resume JOB --set publish.branch=…` pushes another branch, publish.remote=… to "
    "another repository, and --set publish=none ends the work as done, with a patch for a branch."
)
REMEDIES: dict[str, tuple[WaitReason, str]] = {
    "Credentials": (
        "credentials",
        f"Give the worker a valid key, or have the endpoint offer the model, {OTHER_MODEL}",
    ),
    "Endpoint": ("endpoint", "Check the model endpoint, then resume the job."),
    "ContextTooLong": (
        "endpoint",
        "Compacting makes the request no shorter: give the server a larger window, or resume the "
        "job with a model that has one, `starter.py resume JOB --set model.name=…`.",
    ),
    "ModelRefused": ("endpoint", "Check the request against the endpoint, then resume the job."),
    "Dependency": ("dependency", "Bring back what it names, then resume the job."),
    "BranchMoved": (
        "dependency",
        f"Rename or delete that branch at the remote, then resume; {OTHER_BRANCH}",
    ),
    "PublishRefused": (
        "dependency",
        f"Have the remote take that branch, then resume; {OTHER_BRANCH}",
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


def paused_wait(by: str, calls_left: str = "") -> WaitState:
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


def judge_wait(refusal: str) -> WaitState:
    """Return how a job waits whose judge has refused the end of the phase again and again."""
    return WaitState(
        reason="review",
        message=f"The judge does not let the phase end. {one_line(refusal, MOST_SAID)}",
        remedy="Resume lets the agent go on, bypass judge and resume lets the phase end, rewind "
        "with an issue of your own tells it how, or cancel.",
    )


def wait_after_failure(failed: StepFailed) -> WaitState:
    """Return how the job waits after this failure."""
    reason, remedy = REMEDIES.get(failed.kind, OTHERWISE)
    if failed.mend:
        remedy = f"{failed.mend}, {OTHER_MODEL}"
    return WaitState(reason=reason, message=str(failed), remedy=remedy)


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


def temporary_failure_wait(failed: StepFailed, who: str = "job") -> WaitState:
    """Return how a job or project waits that keeps trying to reach what is away."""
    reason, remedy = REMEDIES[failed.kind]
    mend = remedy.partition(",")[0]
    remedy = f"{mend}; the {who} goes on trying by itself, resume tries at once."
    return WaitState(reason=reason, message=str(failed), remedy=remedy, trying=True)
