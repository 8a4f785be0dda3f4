"""A model that stops at one point: its job stays at work while a test looks at it."""

from __future__ import annotations

from collections.abc import Callable

from rehearsal import call, rehearse
from rehearsal.request_view import RequestView, parse_request
from rehearsal.wire import Answer, Model, Request


class Resting:
    """Rehearses, or does what another model would, but calls `wait` for an hour where what it sees
    is that point.

    The job waits for nobody meanwhile: it can be paused, given limits, taken back and cancelled.
    """

    def __init__(self, at: Callable[[RequestView], bool], model: Model = rehearse) -> None:
        self._at = at
        self._model = model

    def __call__(self, request: Request) -> Answer:
        if request.get("tools"):
            view = parse_request(request)
            if self._at(view) and not any(made.tool == "wait" for made in view.calls):
                return call("wait", seconds=3600)
        return self._model(request)


def at_todo(phase: int, number: int, model: Model = rehearse) -> Resting:
    """Rests where a todo of a phase is the current one, before anything is done for it."""

    def is_there(view: RequestView) -> bool:
        return (
            view.number == phase
            and view.current_todo is not None
            and view.current_todo.id == number
        )

    return Resting(is_there, model)
