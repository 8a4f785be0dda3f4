"""A deterministic stand-in for a hosted model that speaks its wire protocol.

`rehearsal.server` offers the same over HTTP.
"""

from rehearsal.agent import rehearse
from rehearsal.script import Script
from rehearsal.transport import RehearsalTransport
from rehearsal.wire import Answer, Cut, Failure, Hang, Model, Reply, Request, Stall, call

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
