"""A deterministic stand-in for a hosted model; it speaks the same wire protocol.

`rehearsal.server` serves it over HTTP.
"""

from rehearsal.rehearsal_model import rehearse
from rehearsal.rehearsal_transport import RehearsalTransport
from rehearsal.script import Script
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
