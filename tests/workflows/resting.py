"""A model that stops at one point: its job stays at work while a test looks at it."""

from collections.abc import Callable

from rehearsal import call, rehearse
from rehearsal.request_view import RequestView, parse_request_view
from rehearsal.wire import Answer, Model, Request


class Resting:
    """The rehearsal model, or another one, except that it calls `wait` for an hour when its request
    is at that point.

    The job waits for nobody meanwhile: it can be paused, given limits, taken back and cancelled.
    """

    def __init__(self, at: Callable[[RequestView], bool], model: Model = rehearse) -> None:
        self._at = at
        self._model = model

    def __call__(self, request: Request) -> Answer:
        if request.get("tools"):
            view = parse_request_view(request)
            if self._at(view) and not any(done_call.tool == "wait" for done_call in view.calls):
                return call("wait", seconds=3600)
        return self._model(request)


def at_todo(phase: int, number: int, model: Model = rehearse) -> Resting:
    """Rest when a certain todo of a phase is the current one, before any work on it."""

    def is_there(view: RequestView) -> bool:
        return (
            view.number == phase
            and view.current_todo is not None
            and view.current_todo.id == number
        )

    return Resting(is_there, model)
