"""Why a job waits, and what a person can do about it, in the words that people read."""

from typing import NamedTuple

from protocol.short_text import one_line
from protocol.waiting import WaitReason, WaitState
from workflows.runtime.activity_failures import MOST_SAID, StepFailed

OTHER_MODEL = (
    "then resume the job; `starter.py resume JOB --set model.name=…` gives it another model, "
    "model.base_url its address."
)
OTHER_BRANCH = (
    "`starter.py resume JOB --set publish.branch=…` pushes another branch, publish.remote=… to "
    "another repository, and --set publish=none ends the work as done, with a patch for a branch."
)


class Remedy(NamedTuple):
    """What a person can do about a failure."""

    reason: WaitReason
    mend: str
    then: str = ", then resume the job."

    @property
    def text(self) -> str:
        return f"{self.mend}{self.then}"


REMEDIES = {
    "Credentials": Remedy(
        "credentials",
        "Give the worker a valid key, or have the endpoint offer the model",
        f", {OTHER_MODEL}",
    ),
    "Endpoint": Remedy("endpoint", "Check the model endpoint"),
    "ContextTooLong": Remedy(
        "endpoint",
        "Compacting makes the request no shorter: give the server a larger window, or resume the "
        "job with a model that has one",
        ", `starter.py resume JOB --set model.name=…`.",
    ),
    "ModelRefused": Remedy("endpoint", "Check the request against the endpoint"),
    "Dependency": Remedy("dependency", "Bring back what it names"),
    "BranchMoved": Remedy(
        "dependency",
        "Rename or delete that branch at the remote",
        f", then resume; {OTHER_BRANCH}",
    ),
    "PublishRefused": Remedy(
        "dependency", "Have the remote take that branch", f", then resume; {OTHER_BRANCH}"
    ),
    "TestsCannotRun": Remedy(
        "dependency",
        "Install what they need: with the system's packages, by `shell.setup`, or in a virtual "
        "environment that shell.readable and shell.path name (docs/sandbox.md); or name the "
        "command, `--test 'make check'`. Resume tries again; for other settings cancel the job "
        "and start it anew",
        ".",
    ),
    "StoreUnavailableError": Remedy("dependency", "Bring back what it names"),
    "Quota": Remedy("quota", "Wait, or raise the quota in the worker's teams.yaml"),
    "Storage": Remedy("storage", "Free space or mend the workspaces root"),
    "CheckpointMissing": Remedy(
        "storage",
        "Put the folder .longhaul/checkpoints back from a backup",
        ", then resume the job; or rewind to a phase whose start is there.",
    ),
    "NewerVersion": Remedy("tool", "Update the workers of the earlier version, or stop them"),
    "WrongRoot": Remedy("storage", "Start a worker on the job's own root"),
}
OTHERWISE = Remedy(
    "tool",
    "Look into errors/ in the workspace; resume tries again, rewind starts the phase anew",
    ".",
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


def step_failure_wait(failed: StepFailed) -> WaitState:
    """Return how the job waits after this failure."""
    remedy = REMEDIES.get(failed.kind, OTHERWISE)
    text = f"{failed.mend}, {OTHER_MODEL}" if failed.mend else remedy.text
    return WaitState(reason=remedy.reason, message=str(failed), remedy=text)


def verdict_failure_wait(guard: str, tool: str, why: str, count: int) -> WaitState:
    """Return how the job waits for a verifier or hook that keeps failing itself."""
    command = f'starter.py bypass JOB {guard} --reason "why"'
    return WaitState(
        reason="dependency",
        message=f"{guard} has kept {tool} back {count} times without a verdict. "
        f"{one_line(why, MOST_SAID)}",
        remedy=f"Mend {guard}, or what it needs, then resume the job: the call comes up again. "
        f"`{command}` before that lets it pass once.",
        command=command,
    )


def closing_failure_wait(failed: StepFailed) -> WaitState:
    """Return how a cancelled job waits whose result could not be written."""
    remedy = (
        "Mend what it names, then resume: closing is tried again. To end it without a result, "
        "cancel the workflow through Temporal."
    )
    return step_failure_wait(failed).model_copy(update={"remedy": remedy})


def start_failure_wait(failed: StepFailed) -> WaitState:
    """Return how a start waits for a dependency while it keeps trying."""
    if failed.kind == "TestsCannotRun":
        # Not tried again before a person has seen to it.
        return step_failure_wait(failed)
    remedy_row = REMEDIES[failed.kind]
    mend = "Start a worker on that root" if failed.kind == "WrongRoot" else remedy_row.mend
    remedy = f"{mend}; the start tries again by itself, resume tries at once, cancel ends it."
    return WaitState(reason=remedy_row.reason, message=str(failed), remedy=remedy, trying=True)


def temporary_failure_wait(failed: StepFailed, who: str = "job") -> WaitState:
    """Return how a job or project waits that keeps trying to reach what is away."""
    remedy_row = REMEDIES[failed.kind]
    remedy = f"{remedy_row.mend}; the {who} goes on trying by itself, resume tries at once."
    return WaitState(reason=remedy_row.reason, message=str(failed), remedy=remedy, trying=True)
