"""Turns at a model endpoint that has a quota, shared by all workers of a store.

Turns are as far apart as the quota of requests and tokens a minute allows. Tokens are estimated by
the request's size, and corrected by what the reply has used. Who waits is in a queue, ordered by
start-time fair queuing: a job of weight 2 gets two turns in a round in which others get one. A
caller looks again when its turn should come, and takes it if it is free. Where only so many
requests may be under way, the next callers look often, and each place goes to the first of them.
"""

import time
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple

from sqlalchemy import (
    Connection,
    Float,
    bindparam,
    case,
    delete,
    func,
    insert,
    select,
    text,
    update,
)

from activities.stores.endpoint_places import EndpointPlaces
from activities.stores.learned_quota import LearnedQuota, NamedLimits, Quota
from activities.stores.schema import ENDPOINTS, SHARES, TURNS

LATE_SECONDS = 5.0
"""A turn that nobody took for so long is lost, and so is the position of who does not look."""
LONGEST_SECONDS = 3600.0
"""A turn is never later, whatever a clock that was set back says."""
UNUSED_SECONDS = 1.0
"""Turns that nobody took for so long may be taken at once, so that callers that look late waste
nothing. With it, no minute has more than the quota."""
COURTESY_SECONDS, SOONER_SECONDS = 0.5, 0.25
"""A turn is left to whom it belongs if that caller looks so soon, or should have so long ago."""
LONGEST_SLEEP = 20.0
"""Seconds that an attempt waits for its turn; the next attempt waits for a later one."""
EARLY_SECONDS = 2.0
"""That attempt begins so long before the turn, which it then does not miss."""
LOOK_AHEAD, SOON_SECONDS = 0.9, 3.0
"""Share of the time until its turn after which a caller looks again, since the turn may come
earlier, unless it comes soon."""
SHORTEST_SLEEP = 0.02
PLACE_LOOKS, SHORTEST_LOOK, LONGEST_LOOK = 20, 0.05, 1.0
"""How often the next caller looks for a place while one is taken on average, and the seconds
between two looks of the next callers. So a place that another worker left is empty for a twentieth
of that time."""
LONGEST_PLACE_SLEEP, LONGEST_PLACE_DELAY = 5.0, 45.0
"""Seconds between two looks of callers further back, in one attempt and between two attempts."""
UNKNOWN_PLACE_SECONDS = 2.0
NEWEST_SHARE = 0.1
"""Weight of the newest reply in the average of tokens by request size."""

NEW_ENDPOINT = text(
    "INSERT INTO endpoints (endpoint, requests_at, tokens_at, tokens_per_byte, round, learned) "
    "VALUES (:endpoint, :requests_at, :tokens_at, :tokens_per_byte, :round, '') "
    "ON CONFLICT DO NOTHING"
)
"""Another worker may insert it at the same moment."""


@dataclass
class TurnSchedule:
    """When an endpoint has a free turn. Times are seconds of the store's clock."""

    requests_at: float = 0.0
    tokens_at: float = 0.0
    tokens_per_byte: float = 0.3
    """Tokens of a request and its reply, on average, by bytes of the request."""
    round: float = 0.0
    """Start of the newest turn, in rounds in which a job of weight 1 has one turn."""

    def free_at(self, now: float) -> float:
        return min(max(self.requests_at, self.tokens_at), now + LONGEST_SECONDS)

    def take_turn(self, now: float, quota: Quota, tokens: float) -> None:
        latest, earliest = now + LONGEST_SECONDS, now - UNUSED_SECONDS
        if quota.requests:
            self.requests_at = max(earliest, min(self.requests_at, latest)) + quota.request_seconds
        if quota.tokens:
            used = tokens * quota.token_seconds
            self.tokens_at = max(earliest, min(self.tokens_at, latest)) + used

    def settle(self, quota: Quota, size: int, estimate: float, used: int) -> None:
        """Correct the estimate of a request by the tokens that it has used."""
        self.tokens_at += (used - estimate) * quota.token_seconds
        self.tokens_per_byte += NEWEST_SHARE * (used / max(size, 1) - self.tokens_per_byte)


_FIGURES = tuple(asdict(TurnSchedule()))
# Built once: to build a query costs as much as to run it.
_CALL = (TURNS.c.endpoint == bindparam("of")) & (TURNS.c.call == bindparam("by"))
_FIND_TURN = select(TURNS).where(_CALL)
_DELETE_TURN = delete(TURNS).where(_CALL)
_WITHDRAW = delete(TURNS).where(_CALL & TURNS.c.at.is_(None))
_LOOK_LATER = update(TURNS).where(_CALL).values(looks_at=bindparam("later"))
_TAKE_TURN = update(TURNS).where(_CALL).values(at=bindparam("now"), tokens=bindparam("cost"))
_NOW = bindparam("now", type_=Float)
_SOON = bindparam("soon", type_=Float)
_IS_HERE = TURNS.c.looks_at.between(_NOW - COURTESY_SECONDS, _NOW + SOONER_SECONDS)
_COUNT_BEFORE = select(
    func.count(),
    func.sum(TURNS.c.tokens),
    func.sum(case((_IS_HERE, 1), else_=0)),
    func.sum(case((TURNS.c.looks_at.between(_NOW - COURTESY_SECONDS, _SOON), 1), else_=0)),
    func.min(TURNS.c.start),
).where(
    TURNS.c.endpoint == bindparam("of"),
    TURNS.c.at.is_(None),
    TURNS.c.looks_at > _NOW - LATE_SECONDS,
    (TURNS.c.start < bindparam("position"))
    | ((TURNS.c.start == bindparam("position")) & (TURNS.c.call < bindparam("by"))),
)
_READ_ENDPOINT = (
    select(*(ENDPOINTS.c[name] for name in _FIGURES), ENDPOINTS.c.learned)
    .where(ENDPOINTS.c.endpoint == bindparam("of"))
    .with_for_update()
)
_SAVE_ENDPOINT = (
    update(ENDPOINTS)
    .where(ENDPOINTS.c.endpoint == bindparam("of"))
    .values({name: bindparam(name) for name in ("learned", *_FIGURES)})
)


@dataclass(frozen=True)
class TurnKey:
    """The endpoint of a turn, and the job and call that it belongs to."""

    endpoint: str
    job: str
    call: str
    weight: float = 1.0

    @property
    def row(self) -> dict[str, str]:
        """Its row, as queries name it."""
        return {"of": self.endpoint, "by": self.call}


@dataclass(frozen=True)
class TurnWait:
    """How long a call waits for its turn."""

    seconds: float
    """Until the turn, as far as known; 0 if it is now."""
    quota: Quota
    """What it waits for; false if the endpoint has none."""
    place_look: float | None = None
    """Seconds until the next look if it waits for a place; other calls of its worker that leave
    one may wake it sooner."""
    start: float = 0.0
    """Its position in the queue, in rounds."""
    has_more_places: bool = False
    """Whether another call may take a place at once."""

    @property
    def is_long(self) -> bool:
        """Whether it is left to another attempt."""
        if self.place_look is not None:
            return self.place_look > LONGEST_PLACE_SLEEP
        return self.seconds > LONGEST_SLEEP

    @property
    def look_seconds(self) -> float:
        """When to look again."""
        if self.place_look is not None:
            return self.place_look
        if self.is_long:
            return self.seconds - EARLY_SECONDS
        share = LOOK_AHEAD if self.seconds > SOON_SECONDS else 1.0
        return max(SHORTEST_SLEEP, share * self.seconds)


class _Before(NamedTuple):
    """Who waits at a position in the queue before a call's."""

    jobs: int
    tokens: float | None
    here: int | None
    """How many of them are due to look."""
    near: int | None
    """How many of them look now or within the longest sleep for a place."""
    first: float | None
    """The first position of them."""


@dataclass
class EndpointTurns:
    """The turns of an endpoint in a transaction; other transactions wait until this one ends."""

    connection: Connection
    endpoint: str
    set_quota: Quota
    clock: float | None = None
    """Seconds; None for the store's clock."""
    now: float = field(init=False)
    schedule: TurnSchedule = field(init=False)
    learned: LearnedQuota = field(init=False)
    places: EndpointPlaces = field(init=False)

    def __post_init__(self) -> None:
        of = {"of": self.endpoint}
        if (row := self.connection.execute(_READ_ENDPOINT, of).first()) is None:
            values = {"endpoint": self.endpoint, **asdict(TurnSchedule())}
            self.connection.execute(NEW_ENDPOINT, values)
            row = self.connection.execute(_READ_ENDPOINT, of).one()
        # After the lock, for which it may have waited.
        self.now = _store_time(self.connection) if self.clock is None else self.clock
        *figures, learned = row
        self.schedule = TurnSchedule(*figures)
        self.learned = LearnedQuota.read(learned, self.now)
        self.places = EndpointPlaces(self.connection, self.endpoint, self.now)

    @property
    def quota(self) -> Quota:
        return self.learned.fill(self.set_quota)

    def save(self) -> None:
        # What lay further ahead would be an hour away at every look.
        latest = self.now + LONGEST_SECONDS
        self.schedule.requests_at = min(self.schedule.requests_at, latest)
        self.schedule.tokens_at = min(self.schedule.tokens_at, latest)
        learned = self.learned.model_dump_json(exclude_defaults=True)
        values = {"of": self.endpoint, **asdict(self.schedule), "learned": learned}
        self.connection.execute(_SAVE_ENDPOINT, values)

    def ask(self, key: TurnKey, size: int, holder: str) -> TurnWait:
        """Return how long a request with `size` bytes waits; if not at all, it has its turn.

        It is in the queue until `settle`, and `holder` has a place until that leaves it.
        """
        if self.set_quota.at_once:
            self.learned.note_at_once(self.set_quota.at_once, self.now)
        quota = self.quota
        if not quota:
            return TurnWait(0.0, quota)
        turn = self.connection.execute(_FIND_TURN, key.row).first()
        if turn and turn.at is not None:
            # A transaction whose answer was lost is repeated.
            is_new = 0 <= self.now - turn.at < LATE_SECONDS
            if self.places.has(holder) if quota.at_once else is_new:
                return TurnWait(0.0, quota)
            self.connection.execute(_DELETE_TURN, key.row)
            turn = None
        has_waited = turn is not None
        start = turn.start if turn else self._enqueue(key, size)
        before = self._count_before(key, start)
        free, newest = None, 0.0
        if quota.at_once:
            taken, newest = self.places.count()
            free = quota.at_once - taken
        wait = self._wait(before, free, newest)
        if wait.seconds:
            later = self.now + wait.look_seconds
            self.connection.execute(_LOOK_LATER, {**key.row, "later": later})
            return replace(wait, start=start)
        if has_waited and self.schedule.free_at(self.now) > self.now - UNUSED_SECONDS:
            # It was the rate that delayed it, and not that all places were taken.
            self.learned.note_waiting_turn(self.now)
        tokens = size * self.schedule.tokens_per_byte
        self.schedule.take_turn(self.now, quota, tokens)
        # Those who are late keep their position, and others get none before them.
        first = start if before.first is None else min(start, before.first)
        self.schedule.round = max(self.schedule.round, first)
        self.connection.execute(_TAKE_TURN, {**key.row, "now": self.now, "cost": tokens})
        if free is None:
            return wait
        self.places.take(holder)
        return replace(wait, has_more_places=free > 1)

    def settle(self, key: TurnKey, used: int | None) -> None:
        """Give up the turn; `used` are the tokens of the reply, None if there was none."""
        turn = self.connection.execute(_FIND_TURN, key.row).first()
        if used is not None:
            self.learned.note_answer(self.now)
            if turn is not None and turn.at is not None:
                self.schedule.settle(self.quota, turn.size, turn.tokens, used)
        self.connection.execute(_DELETE_TURN, key.row)

    def leave(self, holder: str) -> None:
        """Free the place of a request that has ended."""
        if (seconds := self.places.leave(holder)) is not None:
            self.learned.note_place(seconds)

    def note_limits(self, limits: NamedLimits) -> None:
        self.learned.note_limits(limits, self.now)

    def withdraw(self, key: TurnKey) -> None:
        """Take a call out of the queue that waits no more."""
        self.connection.execute(_WITHDRAW, key.row)

    def note_refusal(
        self, key: TurnKey, seconds: float | None, sent: int, worker: str = ""
    ) -> None:
        """Let nobody begin for a time after a 429, and calls be further apart.

        Args:
            seconds: How long, as the endpoint says; None if it does not say.
            sent: Requests of the last minute that this worker knows of.
            worker: Its id.
        """
        turn = self.connection.execute(_FIND_TURN, key.row).first()
        begun = turn.at if turn else None
        pause = self.learned.note_refusal(self.now, begun, sent, worker)
        free = self.now + (pause if seconds is None else seconds)
        self.schedule.requests_at = max(self.schedule.requests_at, free)

    def _enqueue(self, key: TurnKey, size: int) -> float:
        """Enter a call into the queue and return its start: after the job's last turn."""
        mine = (SHARES.c.endpoint == key.endpoint) & (SHARES.c.job == key.job)
        after = self.connection.scalar(select(SHARES.c.next).where(mine))
        start = max(self.schedule.round, after or 0.0)
        old = TURNS.c.looks_at < self.now - LONGEST_SECONDS
        over = SHARES.c.next <= self.schedule.round
        for table, is_over in ((TURNS, old), (SHARES, mine | over)):
            self.connection.execute(
                delete(table).where((table.c.endpoint == key.endpoint) & is_over)
            )
        share = {"endpoint": key.endpoint, "job": key.job, "next": start + 1 / key.weight}
        self.connection.execute(insert(SHARES).values(share))
        turn = {"endpoint": key.endpoint, "call": key.call, "start": start, "size": size}
        tokens = size * self.schedule.tokens_per_byte
        self.connection.execute(insert(TURNS).values(**turn, tokens=tokens, looks_at=self.now))
        return start

    def _count_before(self, key: TurnKey, start: float) -> _Before:
        # Who sleeps longer is passed over: places would be empty if it slept too long.
        of = {**key.row, "now": self.now, "position": start, "soon": self.now + LONGEST_PLACE_SLEEP}
        return _Before(*self.connection.execute(_COUNT_BEFORE, of).one())

    def _wait(self, before: _Before, free_places: int | None, newest: float) -> TurnWait:
        """Return how long a call waits for those whose position in the queue is before its own.

        Args:
            newest: For how many seconds the newest place has been taken.
        """
        quota, free = self.quota, max(0.0, self.schedule.free_at(self.now) - self.now)
        wait = TurnWait(0.0, quota)
        if free or (before.here and (quota.requests or quota.tokens)):
            requests = before.jobs * quota.request_seconds
            theirs = max(requests, (before.tokens or 0.0) * quota.token_seconds)
            wait = TurnWait(max(SHORTEST_SLEEP, min(free + theirs, LONGEST_SECONDS)), quota)
        if free_places is None or free_places > (before.near or 0):
            return wait
        return max(wait, self._wait_for_place(before.jobs, free_places, newest), key=_seconds)

    def _wait_for_place(self, before: int, free: int, newest: float) -> TurnWait:
        at_once = self.quota.at_once or 1
        needed = max(1, before - free + 1)
        # If all that are under way take longer than those before, so will they.
        taken = max(self.learned.place_seconds or UNKNOWN_PLACE_SECONDS, newest)
        seconds = min(needed * taken / at_once, LONGEST_SECONDS)
        shortest = min(max(SHORTEST_LOOK, taken / PLACE_LOOKS), LONGEST_LOOK)
        if needed <= at_once + 1:
            look = min(max(shortest, seconds / 2), LONGEST_LOOK)
        elif seconds > LONGEST_SLEEP:
            look = min(max(seconds / 2, LONGEST_SLEEP / 2), LONGEST_PLACE_DELAY)
        else:
            look = min(max(shortest, seconds / 2), LONGEST_PLACE_SLEEP)
        return TurnWait(max(seconds, SHORTEST_SLEEP), self.quota, look)


def _seconds(wait: TurnWait) -> float:
    return wait.seconds


def endpoint_has_quota(connection: Connection, endpoint: str) -> bool:
    """Whether a worker has learned a quota of the endpoint."""
    query = select(ENDPOINTS.c.learned).where(ENDPOINTS.c.endpoint == endpoint)
    learned = LearnedQuota.read(connection.scalar(query) or "", _store_time(connection))
    return bool(learned.fill(Quota(None, None)))


def _store_time(connection: Connection) -> float:
    """Return the time that all workers of the store share."""
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.scalar(text("SELECT extract(epoch FROM clock_timestamp())")) or 0.0)
