"""Jobs at an endpoint with a quota, in simulated time: the turns are those of the store."""

import heapq
import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import Connection, create_engine

from activities.model.rate_headers import read_rate_headers
from activities.stores.endpoint_turns import EndpointTurns, TurnKey
from activities.stores.learned_quota import NamedLimits, Quota
from activities.stores.schema import METADATA

MINUTE = 60.0
T = TypeVar("T")
NOTHING_SET = Quota(None, None)
Headers = Mapping[str, str]


@dataclass
class AnyMinute:
    """Refuses what exceeds its quota within any minute, and names the limits alone."""

    quota: Quota
    names: bool = True
    answered: deque[tuple[float, int]] = field(default_factory=deque)
    tokens: int = 0

    def take(self, now: float, tokens: int) -> tuple[bool, Headers]:
        while self.answered and self.answered[0][0] <= now - MINUTE:
            self.tokens -= self.answered.popleft()[1]
        full = self.quota.requests and len(self.answered) + 1 > self.quota.requests
        full = full or (self.quota.tokens and self.tokens + tokens > self.quota.tokens)
        if not full:
            self.answered.append((now, tokens))
            self.tokens += tokens
        return not full, self.headers() if self.names else {}

    def headers(self) -> Headers:
        limits = {"requests": self.quota.requests, "tokens": self.quota.tokens}
        left = {
            "requests": (self.quota.requests or 0) - len(self.answered),
            "tokens": (self.quota.tokens or 0) - self.tokens,
        }
        return {
            **{f"x-ratelimit-limit-{unit}": f"{n}" for unit, n in limits.items() if n},
            **{f"x-ratelimit-remaining-{unit}": f"{left[unit]}" for unit, n in limits.items() if n},
        }


@dataclass
class Buckets:
    """Fills up again all the time; its headers say when it is full."""

    quota: Quota
    free_cached: float = 0.0
    """Share of a request's tokens that do not count."""
    level: dict[str, float] = field(default_factory=dict)
    at: float = 0.0

    def take(self, now: float, tokens: int) -> tuple[bool, Headers]:
        limits = {"requests": self.quota.requests or 0.0, "tokens": self.quota.tokens or 0.0}
        level = self.level or dict(limits)
        passed, self.at = now - self.at, now
        self.level = {u: min(n, level[u] + n * passed / MINUTE) for u, n in limits.items()}
        cost = {"requests": 1.0, "tokens": tokens * (1 - self.free_cached)}
        taken = all(not limits[u] or self.level[u] >= cost[u] for u in limits)
        if taken:
            self.level = {u: self.level[u] - cost[u] for u in limits}
        named = {}
        for unit, limit in limits.items():
            if limit:
                named[f"x-ratelimit-limit-{unit}"] = f"{limit:.0f}"
                named[f"x-ratelimit-remaining-{unit}"] = f"{self.level[unit]:.0f}"
                seconds = (limit - self.level[unit]) / limit * MINUTE
                named[f"x-ratelimit-reset-{unit}"] = f"{seconds:.3f}s"
        return taken, named


@dataclass
class Outcome:
    done: dict[int, int]
    """Answers by job."""
    tokens: int
    refused: int
    waits: list[float]


class Play:
    """Jobs with one call at a time on one worker."""

    def __init__(
        self,
        endpoint: AnyMinute | Buckets,
        weights: list[float],
        quota: Quota = NOTHING_SET,
        latency: tuple[float, float] = (0.5, 4.0),
    ) -> None:
        self.endpoint, self.weights, self.quota, self.latency = endpoint, weights, quota, latency
        self.chance = random.Random(7)
        engine = create_engine("sqlite://")
        METADATA.create_all(engine)
        self.connection: Connection = engine.connect()
        self.now = 0.0
        self.sent: deque[float] = deque()
        self.limits = NamedLimits()
        self.has_learned = bool(quota)
        self.calls = [0] * len(weights)
        self.asked = [0.0] * len(weights)
        self.sizes = [0] * len(weights)

    def run(self, learning: float, seconds: float) -> Outcome:
        """Return what became of the calls after the seconds of learning."""
        outcome = Outcome(dict.fromkeys(range(len(self.weights)), 0), 0, 0, [])
        events: list[tuple[float, int, int, int]] = []
        for job in range(len(self.weights)):
            self._ask_anew(job, 0.0)
            heapq.heappush(events, (self.chance.random(), job, 0, 0))
        while events[0][0] < learning + seconds:
            self.now, job, kind, tokens = heapq.heappop(events)
            counted = outcome if self.now >= learning else Outcome({job: 0}, 0, 0, [])
            heapq.heappush(events, self._step(job, kind, tokens, counted))
        return outcome

    def _step(
        self, job: int, kind: int, tokens: int, counted: Outcome
    ) -> tuple[float, int, int, int]:
        """Carry out what is due: 0 asks for a turn, 1 sends, 2 settles."""
        key = TurnKey("e", f"{job}", f"{job} {self.calls[job]}", self.weights[job])
        if kind == 0:
            look = (
                self._turns(lambda turns: turns.ask(key, self.sizes[job], f"{job}"))
                if self.has_learned
                else None
            )
            if look and look.seconds:
                return self.now + look.look_seconds + self.chance.random() * 0.01, job, 0, 0
            counted.waits.append(self.now - self.asked[job])
            used = int(self.sizes[job] * 0.25) + self.chance.randint(50, 1_500)
            return self.now + self.chance.random() * 0.2, job, 1, used
        if kind == 1:
            taken, headers = self.endpoint.take(self.now, tokens)
            self.limits = read_rate_headers(headers)
            self.has_learned = self.has_learned or self.limits != NamedLimits() or not taken
            if not taken:
                counted.refused += 1
                while self.sent and self.sent[0] < self.now - MINUTE:
                    self.sent.popleft()
                self._turns(lambda turns: turns.note_refusal(key, None, len(self.sent)))
                self._turns(lambda turns: turns.settle(key, None))
                return self.now + 1.0, job, 0, 0
            self.sent.append(self.now)
            counted.done[job] += 1
            counted.tokens += tokens
            return self.now + self.chance.uniform(*self.latency), job, 2, tokens
        if self.has_learned:
            self._turns(lambda turns: turns.settle(key, tokens))
        self.calls[job] += 1
        self._ask_anew(job, self.now)
        return self.now, job, 0, 0

    def _ask_anew(self, job: int, now: float) -> None:
        self.asked[job], self.sizes[job] = now, self.chance.randint(4_000, 40_000)

    def _turns(self, work: Callable[[EndpointTurns], T]) -> T:
        turns = EndpointTurns(self.connection, "e", self.quota, 1_000_000 + self.now)
        turns.note_limits(self.limits)
        result = work(turns)
        turns.save()
        return result
