"""What the replies of a running activity have used: it counts even if the activity fails or is
given up."""

from __future__ import annotations

import contextvars

from protocol.usage import Usage

_paid: contextvars.ContextVar[dict[str, Usage]] = contextvars.ContextVar("paid replies")


def begin_paid_replies() -> None:
    """Begin with no replies; called once by an activity, before it asks a model."""
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
    """Return what all replies have used."""
    total = Usage()
    for used in _paid.get({}).values():
        total.add(used)
    return total
