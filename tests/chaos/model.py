"""A model that can be made to fail, and that counts its requests."""

import re
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from activities.toolkit.effects import MAY_HAVE_HAPPENED
from rehearsal import Answer, Cut, Failure, Model, Reply, Request, Stall
from tests.chaos.plan import Kind

SLOW_SECONDS = 2.0
TOOK = re.compile(r"in \d+\.\d+s")
"""The duration that a test run prints, which differs every time."""


@dataclass
class Moody:
    """The model of a piece of work, disturbed on demand."""

    model: Model
    pause: float = 0.0
    """Seconds in the middle of each answer."""
    mood: Kind | None = None
    """What is wrong with it at present."""
    answered: Counter[str] = field(default_factory=Counter)
    """Number of full answers to each request, by its messages."""
    arrived: float = 0.0
    """Time of the last request, by the monotonic clock."""
    told_of_interruption: bool = False
    """Whether an agent was told that one of its calls may have happened."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request) -> Answer:
        messages = TOOK.sub("in some time", str(request["messages"]))
        answer = self.model(request)
        assert isinstance(answer, Reply)
        with self._lock:
            self.arrived = time.monotonic()
            self.told_of_interruption |= MAY_HAVE_HAPPENED[:60] in messages
            if spoilt := spoil(answer, self.mood):
                return spoilt
            self.answered[messages] += 1
        if self.mood == "model is slow":
            time.sleep(SLOW_SECONDS)
        return Stall(answer, self.pause) if self.pause else answer


def spoil(reply: Reply, mood: Kind | None) -> Answer | None:
    """Return the answer that replaces the reply; None to send the reply."""
    match mood:
        case "model 429":
            return Failure(429, "Too many requests.", headers={"retry-after": "1"})
        case "model 500":
            return Failure(500, "The server had an error.")
        case "model breaks off":
            return Cut(reply)
        case "model falls silent":
            return Stall(reply)
        case _:
            return None
