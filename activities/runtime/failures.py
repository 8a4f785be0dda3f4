"""Failures that end or park a job, as typed failures that workflow code reacts to.

    BadStart            the job cannot start: unknown agent, missing document, …   job fails
    CheckpointMissing   the store does not hold the commit                         go back
    NewerVersion        a later version wrote the checkpoint                       retried, parks
    WrongRoot           this worker serves another workspaces root                 retried
    Storage             disk full, read-only, unreadable                           retried, parks
    Credentials         bad key, unknown model, quota spent                        parks
    Endpoint            the model endpoint cannot be used as asked                 retried, parks
    ContextTooLong      the endpoint calls the request too long                    compacts, parks
    ModelRefused        the endpoint refused this very request                     parks
    BranchMoved         the branch to push to has commits of others                parks
    PublishRefused      the remote refuses the branch, or it may not be pushed     parks
    TestsCannotRun      a repository's tests cannot be run before the work         parks
    Quota               the team of the start is over its quota                    parks
    Dependency          a store, MCP server, remote or the like cannot be reached  retried, parks
    Unforeseen          anything else                                              retried, parks

Mistakes of the *model* are none of these: they become messages to the model.
"""

import asyncio
import contextvars
import errno
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from traceback import walk_tb

import pygit2
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory, FailureError

from activities.checkpoints import (
    CheckpointMissing,
    GitNotInstalled,
    NewerCheckpoint,
    RemoteUnavailable,
    RootError,
)
from activities.redaction.secrets import redact
from activities.runtime.heartbeats import AttemptSuperseded
from config.schema.agent import ConfigError
from protocol.failure_details import GIVEN_UP, OUTAGE, helps_detail, mend_detail, unfinished_detail
from protocol.requests import LOST_WORKERS
from protocol.short_text import as_sentence
from protocol.usage import Usage

ATTEMPTS = 4
"""Default number of attempts before a failure that may pass is left to a person."""
MAX_DELAY = 60.0
STORE_MODULES = ("activities.checkpoints.", "activities.job.")
"""Modules whose file errors are failures of the workspaces root."""


def typed_failure(
    kind: str,
    message: str,
    *,
    retry: bool = False,
    delay: float | None = None,
    longest: float = MAX_DELAY,
    mend: str = "",
    helps: str = "",
    outage: bool = False,
) -> ApplicationError:
    """Return a typed failure with a message for people.

    Args:
        kind: A type from the table above.
        delay: Seconds until the retry, if the other side named them; else exponential. Who keeps
            refusing at the times it names is asked ever less often.
        longest: Upper bound of the exponential delay, in seconds.
        mend: What to do, as the beginning of a sentence, if the job is to say it apart from the
            message.
        helps: What may help beside that, as the end of a sentence.
        outage: Whether the workflow tries again by itself once Temporal retries no more.
    """
    if retry:
        # Not set in the retry policy: work lost with a killed worker is retried immediately.
        attempt = activity.info().attempt if activity.in_activity() else 1
        doublings = attempt - (1 if delay is None else ATTEMPTS)
        delay = max(delay or 0.0, min(2.0 ** min(doublings, 20), longest))
    return ApplicationError(
        redact(message),
        *([mend_detail(mend)] if mend else []),
        *([helps_detail(helps)] if helps else []),
        *([OUTAGE] if outage else []),
        type=kind,
        non_retryable=not retry,
        next_retry_delay=timedelta(seconds=delay) if delay is not None else None,
    )


def amended_failure(
    failure: ApplicationError, *details: object, message: str = ""
) -> ApplicationError:
    amended = ApplicationError(
        message or failure.message,
        *failure.details,
        *details,
        type=failure.type,
        non_retryable=failure.non_retryable,
        next_retry_delay=failure.next_retry_delay,
        category=failure.category,
    )
    amended.__cause__ = failure.__cause__
    return amended


@contextmanager
def typed_failures(most: int | None = None) -> Iterator[None]:
    """Turn exceptions of libraries into typed failures, with what the activity's replies have used.

    Args:
        most: Attempts before a passing failure is left to a person; None: the activity's limit.
    """
    begin_paid_replies()
    try:
        with _typed_exceptions(most):
            yield
    except ApplicationError as failure:
        if (used := paid_usage()) == Usage():
            raise
        raise amended_failure(failure, unfinished_detail(used)) from failure.__cause__


@contextmanager
def _typed_exceptions(most: int | None) -> Iterator[None]:
    try:
        yield
    except AttemptSuperseded:
        # A late worker causes hundreds: log one line each instead of the SDK's traceback.
        activity.logger.info("this attempt comes too late, another has taken its place")
        raise ApplicationError(
            "superseded", type="Superseded", category=ApplicationErrorCategory.BENIGN
        ) from None
    except asyncio.CancelledError:
        details = activity.cancellation_details()
        # Given up by the workflow, and not by its worker.
        if paid_usage() == Usage() or details is None or not details.cancel_requested:
            raise
        # The SDK lets no cancellation say anything.
        raise ApplicationError(
            "given up; the details have what its replies have used",
            type=GIVEN_UP,
            non_retryable=True,
            category=ApplicationErrorCategory.BENIGN,
        ) from None
    except CheckpointMissing as error:
        raise typed_failure("CheckpointMissing", str(error)) from error
    except NewerCheckpoint as error:
        # A worker of that version may take a later attempt.
        raise typed_failure(
            "NewerVersion", f"This worker is too old: {error}.", retry=may_retry_activity(most)
        ) from error
    except ConfigError as error:
        raise typed_failure("BadStart", str(error)) from error
    except (RemoteUnavailable, GitNotInstalled) as error:
        raise typed_failure(
            "Dependency",
            as_sentence(
                f"This worker lacks the job's checkpoint, and the remote gives none: {error}"
            ),
            retry=may_retry_activity(most),
            outage=True,
        ) from error
    except (RootError, OSError, pygit2.GitError) as error:
        # Remedies for other errors are shown where the job waits.
        is_refused = isinstance(error, PermissionError)
        mend = " Give the worker's user access to what it names." if is_refused else ""
        raise typed_failure(
            "Storage",
            f"The workspaces root cannot be used: {error}.{mend}",
            retry=may_retry_activity(most),
            # Others may free it, so that nobody has to be there.
            outage=getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT),
        ) from error
    except FailureError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise typed_failure("Unforeseen", what[:1000], retry=may_retry_activity(most)) from error


def is_storage_failure(error: OSError) -> bool:
    """Return whether a full disk or our store of files raised it, not code that uses files."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return True
    frames = walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__", "").startswith(STORE_MODULES) for frame, _ in frames)


def is_failure_retried(error: ApplicationError) -> bool:
    """Return whether Temporal retries after this failure and a retry is worthwhile."""
    return not error.non_retryable and may_retry_activity()


def may_retry_activity(most: int | None = None) -> bool:
    """Return whether another attempt of this activity is worthwhile, at most `most` in all."""
    info = activity.info()
    attempts = info.retry_policy.maximum_attempts if info.retry_policy else 0
    if attempts and not info.is_local:
        attempts -= LOST_WORKERS
    attempts = attempts or ATTEMPTS
    return info.attempt < min(attempts, most or attempts)


_paid: contextvars.ContextVar[dict[str, Usage]] = contextvars.ContextVar("paid replies")


def begin_paid_replies() -> None:
    _paid.set({})


def note_paid_reply(key: str, used: Usage) -> None:
    """Note what counts of one reply, and of the attempts before it, if nobody uses it.

    Args:
        key: Identifies the question. What is noted again replaces what was noted before.
        used: The usage without its cost.
    """
    if (paid := _paid.get(None)) is not None:
        paid[key] = used


def paid_usage() -> Usage:
    total = Usage()
    for used in _paid.get({}).values():
        total.add(used)
    return total
