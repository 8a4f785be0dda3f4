"""Failures of activities, as Temporal reports them to a workflow."""

from datetime import timedelta

from temporalio.exceptions import ActivityError, ApplicationError, FailureError, TimeoutError

from protocol import failure_details
from protocol.errors import Interruption
from protocol.short_text import shorten_to_start
from protocol.usage import Usage

TRY_AGAIN = timedelta(seconds=30)
"""How long a job leaves an endpoint alone that names no time itself."""
MOST_SAID = 800
MOST_CAUSES = 5


class StepFailed(Interruption):
    """An activity failed for good.

    Temporal wraps the failure of a regular activity but not of a local one; here both are the same.
    """

    def __init__(self, step: str, error: FailureError) -> None:
        cause = error.cause if isinstance(error, ActivityError) and error.cause else error
        self.step = step
        self.delay = TRY_AGAIN
        """When to retry a temporary failure."""
        self.message = shorten_to_start(str(getattr(cause, "message", None) or cause), MOST_SAID)
        self.causes = _activity_failure_causes(cause)
        """The chain of causes, one line each."""
        self.by_fallback = False
        """Whether a fallback refused, and not the model itself."""
        self.mend = ""
        """What a person can mend, if the failure says so."""
        self.helps = ""
        """What may help beside that, as the end of a sentence."""
        self.is_large = False
        """Whether a large request was refused for a cause that is not known."""
        self.is_outage = False
        self.unfinished = Usage()
        """What replies that broke off have used, without its cost."""
        if isinstance(cause, ApplicationError):
            self.kind = cause.type or "Unknown"
            if cause.details and isinstance(cause.details[0], (int, float)):
                self.delay = timedelta(seconds=cause.details[0])
            self.by_fallback = failure_details.BY_FALLBACK in cause.details
            self.mend = failure_details.read_mend_detail(cause.details)
            self.helps = failure_details.read_helps_detail(cause.details)
            self.is_large = failure_details.LARGE in cause.details
            self.is_outage = failure_details.OUTAGE in cause.details
            self.unfinished = failure_details.read_unfinished_detail(cause.details)
        else:
            self.kind = "Timeout" if isinstance(cause, TimeoutError) else "Unknown"
        """The typed failure's word (`activities.runtime.failures`), or another word for "
        "what it was."""
        super().__init__(f"{step}: {self.message}")

    def add_words(self, words: str) -> None:
        """Add a sentence to what people read."""
        self.message = f"{self.message} {words}"
        self.args = (f"{self.step}: {self.message}",)


def _activity_failure_causes(error: BaseException | None) -> list[str]:
    causes: list[str] = []
    while error is not None and len(causes) < MOST_CAUSES:
        kind = getattr(error, "type", None) or type(error).__name__
        said = f"{kind}: {getattr(error, 'message', None) or error}"
        causes.append(shorten_to_start(said, MOST_SAID))
        error = error.__cause__
    return causes


def store_unavailable_failure(lacking: str) -> StepFailed:
    """Return the failure of a job that could end if its store answered."""
    return StepFailed("job_complete", ApplicationError(f"{lacking}.", type="StoreUnavailableError"))


def is_called_workflow_gone(error: FailureError) -> bool:
    """Whether the target of a signal is a closed workflow."""
    return getattr(error, "type", None) == "ExternalWorkflowExecutionNotFound"
