"""What ends or parks a job, as the typed failures that workflow code reacts to.

    BadStart            the job cannot start: unknown agent, missing document, …   job fails
    CheckpointMissing   the store does not hold the commit                         go back
    WrongRoot           this worker serves another workspaces root                 retried
    Storage             disk full, read-only, unreadable                           retried, parks
    Credentials         bad key, unknown model, quota spent                        parks
    Endpoint            the model endpoint cannot be used as asked                 retried, parks
    ModelRefused        the endpoint refused this very request                     parks

What the *model* did wrong is none of these: it becomes a message to the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pygit2
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.checkpoints import CheckpointMissing, RootError
from config.schema import Problem

ATTEMPTS = 4
"""After so many, a failure that may pass is left to a person."""


def failure(
    kind: str, message: str, *, retry: bool = False, delay: float | None = None
) -> ApplicationError:
    """A typed failure with a message for people.

    Args:
        kind: One of the words above.
        message: What was wrong and what to do, in one line.
        retry: Whether Temporal should try again.
        delay: Seconds until it should, when the other side said so.
    """
    return ApplicationError(
        message,
        type=kind,
        non_retryable=not retry,
        next_retry_delay=timedelta(seconds=delay) if delay is not None else None,
    )


@contextmanager
def typed() -> Iterator[None]:
    """Turn what libraries raise into typed failures; anything unforeseen passes as it is."""
    try:
        yield
    except CheckpointMissing as error:
        raise failure("CheckpointMissing", str(error)) from error
    except Problem as error:
        raise failure("BadStart", str(error)) from error
    except (RootError, OSError, pygit2.GitError) as error:
        raise failure(
            "Storage",
            f"The workspaces root cannot be used: {error}. Free space or mend it.",
            retry=may_pass(),
        ) from error


def may_pass() -> bool:
    """Whether another attempt of this activity is worth it."""
    return activity.info().attempt < ATTEMPTS
