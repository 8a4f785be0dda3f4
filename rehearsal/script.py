"""A scripted model that plays a test's script and records deviations from it."""

import threading

from rehearsal.wire import Answer, Failure, Model, Request


class Script:
    """A model that plays replies in order, or one function of the request for every call.

        with Script(call("todo_complete"), Failure(503), lambda request: ...) as script:
            ...  # RehearsalTransport(script)

    A single function answers all requests; among several entries a function answers one.
    An unexpected request is answered with HTTP 400 and remembered; `verify()`, which the end of
    the `with` block calls, raises for those and for replies left unused. Safe to call from
    several threads.
    """

    def __init__(self, *replies: Answer | Model) -> None:
        self.requests: list[Request] = []
        self.unexpected: list[str] = []
        self._replies = replies
        self._forever = len(replies) == 1 and callable(replies[0])
        self._played = 0
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            if self._played >= len(self._replies) and not self._forever:
                return self._refuse_request(
                    number, f"all {len(self._replies)} replies are used", request
                )
            answer = self._replies[0 if self._forever else self._played]
            self._played += 1
            try:
                return answer(request) if callable(answer) else answer
            except Exception as error:
                # A failed assertion in a test's function must reach the test, not the client.
                return self._refuse_request(number, f"{type(error).__name__}: {error}", request)

    @property
    def unused(self) -> int:
        """Number of replies that were not played."""
        return 0 if self._forever else max(0, len(self._replies) - self._played)

    def verify(self) -> None:
        """Raise AssertionError if the requests differed from the script."""
        problems = list(self.unexpected)
        if self.unused:
            rest = ", ".join(map(str, self._replies[self._played :][:3]))
            problems.append(f"{self.unused} of {len(self._replies)} replies unused, next: {rest}")
        if problems:
            raise AssertionError("script: " + "; ".join(problems))

    def __enter__(self) -> "Script":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.verify()

    def _refuse_request(self, number: int, why: str, request: Request) -> Failure:
        last = str((request.get("messages") or [{}])[-1].get("content"))
        message = f"unexpected request {number} ({why}), ending in {last[-200:]!r}"
        self.unexpected.append(message)
        return Failure(400, message, code="unexpected_request")
