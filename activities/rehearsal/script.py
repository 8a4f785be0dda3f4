"""A scripted model: plays what a test wrote down and remembers whatever did not go as written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from activities.rehearsal.wire import Answer, Failure, Model, Request


@dataclass(frozen=True)
class Turn:
    """One entry of a script: what to answer, and what the request must look like."""

    answer: Answer | Model
    expect: Callable[[Request], object] | None = None
    """Called with the request; when it returns something false the request is unexpected."""


class Script:
    """A model that plays replies in order, or one function of the request for every call.

        with Script(call("todo_complete"), Failure(503), lambda request: ...) as script:
            ...  # RehearsalTransport(script)

    A single function answers all requests; among several entries a function answers one.
    An unexpected request is answered with HTTP 400 and remembered; `verify()`, which the end of
    the `with` block calls, raises for those and for replies left unused. Safe to call from
    several threads.

    Args:
        summary: Answers requests that offer no tools (summaries of a phase), any number of
            times and apart from the list. Without it they take the next reply as others do.
    """

    def __init__(self, *replies: Answer | Model | Turn, summary: Answer | None = None) -> None:
        self.requests: list[Request] = []
        self.unexpected: list[str] = []
        self._turns = [item if isinstance(item, Turn) else Turn(item) for item in replies]
        self._forever = len(replies) == 1 and callable(replies[0])
        self._played = 0
        self._summary = summary
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            if self._summary is not None and not request.get("tools"):
                return self._summary
            number = len(self.requests)
            if self._played >= len(self._turns) and not self._forever:
                return self._refuse(number, f"all {len(self._turns)} replies are used", request)
            turn = self._turns[0 if self._forever else self._played]
            try:
                if turn.expect is not None and not turn.expect(request):
                    expectation = f"it is not what reply {self._played + 1} expects"
                    return self._refuse(number, expectation, request)
                self._played += 1
                return turn.answer(request) if callable(turn.answer) else turn.answer
            except Exception as error:
                # A failed assertion in a test's function must reach the test, not the client.
                return self._refuse(number, f"{type(error).__name__}: {error}", request)

    @property
    def unused(self) -> int:
        """How many replies were not played."""
        return 0 if self._forever else max(0, len(self._turns) - self._played)

    def verify(self) -> None:
        """Raise AssertionError when the script and what was asked of it differ."""
        problems = list(self.unexpected)
        if self.unused:
            rest = ", ".join(str(turn.answer) for turn in self._turns[self._played :][:3])
            problems.append(f"{self.unused} of {len(self._turns)} replies unused, next: {rest}")
        if problems:
            raise AssertionError("script: " + "; ".join(problems))

    def __enter__(self) -> Script:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.verify()

    def _refuse(self, number: int, why: str, request: Request) -> Failure:
        last = str((request.get("messages") or [{}])[-1].get("content"))
        message = f"unexpected request {number} ({why}), ending in {last[-200:]!r}"
        self.unexpected.append(message)
        return Failure(400, message, code="unexpected_request")
