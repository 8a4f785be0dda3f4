"""What an endpoint allows in a minute, as it was set, or learned from its answers and refusals."""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from pydantic import Field, ValidationError

from protocol.data_model import Data

PACE = 0.98
"""Share of a quota that is used: requests reach the endpoint some milliseconds early or late."""
MINUTE = 60.0
FORGOTTEN_SECONDS = 3600.0
"""What nothing has confirmed for so long counts no more."""
LEAST_RATE, LEAST_SHARE = 20.0, 0.1
"""Requests a minute, and share of the limits that the endpoint names, below which no refusal
leads. Of fewer requests a refusal says nothing: it may be of a moment, and one job sends so few."""
DECREASE, NAMED_DECREASE = 0.9, 0.95
"""What a refusal leaves of the rate, and of the share."""
PAUSE_SECONDS = 10.0
"""Refusals within so long count as one."""
GROWTH, FURTHER_GROWTH = 0.05, 0.2
"""What a minute in which calls wait adds, as a share of the rate at the last refusal: below that
rate, and above it, where what it is above that rate doubles as well."""
LONGEST_GROWTH = 5.0
"""Seconds that a call that waited counts for at most."""
NEWEST_PLACE = 0.1
"""Weight of the newest place in the average of how long one is taken."""
MOST_SPREAD = 10.0
LONGEST_PAUSE, MOST_DOUBLED = 60.0, 6


@dataclass(frozen=True)
class Quota:
    """What an endpoint allows; None is no limit."""

    requests: float | None
    """A minute."""
    tokens: float | None
    at_once: int | None = None
    """Requests under way."""

    @property
    def request_seconds(self) -> float:
        return MINUTE / (PACE * self.requests) if self.requests else 0.0

    @property
    def token_seconds(self) -> float:
        return MINUTE / (PACE * self.tokens) if self.tokens else 0.0

    def __bool__(self) -> bool:
        return bool(self.requests or self.tokens or self.at_once)


@dataclass(frozen=True)
class NamedLimits:
    """The limits that an answer names in its headers."""

    requests: float | None = None
    """A minute."""
    tokens: float | None = None
    tokens_left: float | None = None
    tokens_reset: float | None = None
    """Seconds until all tokens are there again, or until the next minute begins."""

    @property
    def spread(self) -> float:
        """How much faster than by the limit the tokens may be used.

        An endpoint counts fewer tokens than we do if cached ones are free. While more than half of
        them remain, what remains is spread until the reset.
        """
        limit, left, reset = self.tokens, self.tokens_left, self.tokens_reset
        if not limit or left is None or reset is None or left <= limit / 2:
            return 1.0
        return min(MOST_SPREAD, max(1.0, left / max(reset, 0.1) * MINUTE / limit))


class LearnedQuota(Data):
    """What was learned of an endpoint. Times are seconds of the store's clock."""

    requests: float | None = None
    """The limit that the endpoint names, a minute."""
    tokens: float | None = None
    spread: float = 1.0
    share: float = 1.0
    """Of these limits, that refusals have led to."""
    rate: float | None = None
    """Requests a minute that refusals have led to where no limits are named."""
    refused_rate: float = 0.0
    """The rate at the last refusal."""
    refused_at: float = 0.0
    first_refused_at: float = 0.0
    """When the first rate was set."""
    counted: list[str] = Field(default_factory=list)
    """The workers whose requests are counted in it."""
    grown_at: float = 0.0
    misses: int = 0
    """Refusals since the last answer."""
    answered: float = 0.0
    """Answers of the last minute, of which older ones count less."""
    answered_at: float = 0.0
    confirmed_at: float = 0.0
    place_seconds: float = 0.0
    """How long a place is taken, on average; 0 if not known."""
    at_once: int | None = None
    """The fewest requests at once that a call of the last minute was limited to."""
    at_once_at: float = 0.0

    @classmethod
    def read(cls, stored: str, now: float) -> Self:
        """Return what is stored and was confirmed within the hour. Other versions may store what
        cannot be read.
        """
        with suppress(ValidationError):
            learned = cls.model_validate_json(stored or "{}")
            if now - learned.confirmed_at < FORGOTTEN_SECONDS:
                return learned
            kept = {"answered", "answered_at", "place_seconds", "at_once", "at_once_at"}
            return cls(**learned.model_dump(include=kept))
        return cls()

    @property
    def is_named(self) -> bool:
        """Whether the endpoint names its limits."""
        return bool(self.requests or self.tokens)

    def fill(self, quota: Quota) -> Quota:
        """Return the quota with what is learned where nothing is set."""
        requests = self.share * self.requests if self.requests else None
        tokens = self.share * self.spread * self.tokens if self.tokens else None
        if not self.is_named:
            requests = self.rate
        at_once = min(quota.at_once, self.at_once or quota.at_once) if quota.at_once else None
        return Quota(quota.requests or requests, quota.tokens or tokens, at_once)

    def note_limits(self, limits: NamedLimits, now: float) -> None:
        if limits == NamedLimits():
            return
        self.requests, self.tokens, self.spread = limits.requests, limits.tokens, limits.spread
        self.confirmed_at = now

    def note_answer(self, now: float) -> None:
        self.answered = self.answers(now) + 1
        self.answered_at, self.misses = now, 0

    def answers(self, now: float) -> float:
        """Return how many answers a minute there are, by those of the last minutes."""
        return decayed_count(self.answered, now - self.answered_at)

    def note_at_once(self, own: int, now: float) -> None:
        """Keep the lowest limit of the last minute, which is that of all.

        With several, calls of the lowest would wait for ever, and keep others waiting.
        """
        is_old = not 0 <= now - self.at_once_at < MINUTE
        if is_old or self.at_once is None or own <= self.at_once:
            self.at_once, self.at_once_at = own, now

    def note_place(self, seconds: float) -> None:
        """Count for how long a place was taken."""
        old = self.place_seconds or seconds
        self.place_seconds = old + NEWEST_PLACE * (seconds - old)

    def note_waiting_turn(self, now: float) -> None:
        """Let more calls be sent again, since one had to wait for its turn."""
        minutes = min(max(0.0, now - self.grown_at), LONGEST_GROWTH) / MINUTE
        self.grown_at = now
        self.share = min(1.0, self.share + GROWTH * minutes)
        if self.rate:
            above = self.rate - self.refused_rate
            # The first rate may be far too low: not all workers have been refused within it.
            growth = GROWTH * self.refused_rate
            if above >= 0:
                growth = FURTHER_GROWTH * self.refused_rate + above
            self.rate += growth * minutes

    def note_refusal(self, now: float, turn: float | None, sent: int, worker: str = "") -> float:
        """Lower the rate after a 429; return for how many seconds nobody should ask.

        Args:
            turn: When the refused call had its turn; None if it had none.
            sent: Requests of the last minute that this worker knows of.
            worker: Its id.
        """
        self._add_up(now, turn, sent, worker)
        # What was sent before the last refusal, or before the limits were known, says nothing new,
        # and nothing does until the endpoint has answered again.
        is_old = now - self.refused_at < PAUSE_SECONDS or (turn or now) <= self.refused_at
        if not (is_old or self.misses or (turn is None and self.is_named)):
            is_first = not self.rate
            self._decrease(now, max(self.answers(now), sent))
            if is_first and self.rate:
                self.first_refused_at, self.counted = now, [worker]
        pause = min(2.0 ** min(self.misses, MOST_DOUBLED), LONGEST_PAUSE)
        self.misses += 1
        self.confirmed_at = now
        return pause

    def _add_up(self, now: float, turn: float | None, sent: int, worker: str) -> None:
        """Count what a worker sent that is refused soon after the one that set the first rate.

        That one knew of its own requests alone. A call whose turn came later went by the rate.
        """
        is_soon = self.rate and now - self.first_refused_at < MINUTE and not self.is_named
        if is_soon and worker not in self.counted and (turn or 0.0) <= self.first_refused_at:
            self.counted.append(worker)
            self.rate = (self.rate or 0.0) + DECREASE * sent
            self.refused_rate += sent

    def _decrease(self, now: float, used: float) -> None:
        """Lower the share, or the rate: that which is kept, or what was used if far less."""
        if self.is_named:
            self.share = max(LEAST_SHARE, NAMED_DECREASE * self.share)
        elif (rate := self.rate if self.rate and used > self.rate / 2 else used) >= LEAST_RATE:
            self.rate, self.refused_rate = max(LEAST_RATE, DECREASE * rate), rate
        else:
            return
        self.refused_at = self.grown_at = now


def decayed_count(count: float, seconds: float) -> float:
    """Return what a count of the last minute comes to after so many seconds."""
    return count * math.exp(-max(0.0, seconds) / MINUTE)
