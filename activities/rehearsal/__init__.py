"""A deterministic stand-in for a hosted model that speaks its wire protocol.

`activities.rehearsal.server` offers the same over HTTP.
"""

from activities.rehearsal.agent import rehearse
from activities.rehearsal.script import Script
from activities.rehearsal.transport import RehearsalTransport
from activities.rehearsal.wire import (
    Answer,
    Cut,
    Failure,
    Hang,
    Model,
    Reply,
    Request,
    Stall,
    call,
)

__all__ = [
    "Answer",
    "Cut",
    "Failure",
    "Hang",
    "Model",
    "RehearsalTransport",
    "Reply",
    "Request",
    "Script",
    "Stall",
    "call",
    "rehearse",
]
