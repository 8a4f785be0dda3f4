"""Turns at a model endpoint that has a quota, shared by all workers of a store.

A request takes the next free turn. Turns are as far apart as the quota of requests and tokens a
minute allows, so jobs with one request at a time get equal shares. Tokens are estimated by the
request's size, and corrected by what the reply has used.
"""

import time
from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, text, update

from activities.stores.schema import ENDPOINTS, TURNS

PACE = 0.98
"""Share of a quota that is used: requests reach the endpoint some milliseconds early or late."""
LATE_SECONDS = 5.0
"""A turn that nobody took for so long is lost, so that calls after a break do not come at once."""
LONGEST_SECONDS = 3600.0
"""A turn is never later, whatever a clock that was set back says."""
NEWEST_SHARE = 0.1
"""Weight of the newest reply in the average of tokens by request size."""

NEW_ENDPOINT = text(
    "INSERT INTO endpoints (endpoint, requests_at, tokens_at, tokens_per_byte) "
    "VALUES (:endpoint, :requests_at, :tokens_at, :tokens_per_byte) ON CONFLICT DO NOTHING"
)
"""Another worker may insert it at the same moment."""


@dataclass(frozen=True)
class Quota:
    """What an endpoint allows in a minute; None is no limit."""

    requests: int | None
    tokens: int | None

    @property
    def request_seconds(self) -> float:
        return 60 / (PACE * self.requests) if self.requests else 0.0

    @property
    def token_seconds(self) -> float:
        return 60 / (PACE * self.tokens) if self.tokens else 0.0


@dataclass(frozen=True)
class TurnKey:
    """The endpoint of a turn, and the call that it belongs to."""

    endpoint: str
    call: str

    @property
    def row(self) -> ColumnElement[bool]:
        return (TURNS.c.endpoint == self.endpoint) & (TURNS.c.call == self.call)


@dataclass
class Schedule:
    """The next free turn of an endpoint. Times are seconds of the store's clock."""

    requests_at: float = 0.0
    tokens_at: float = 0.0
    tokens_per_byte: float = 0.3
    """Tokens of a request and its reply, on average, by bytes of the request."""

    def take_turn(self, now: float, quota: Quota, size: int) -> tuple[float, float]:
        """Return the next turn of a request with `size` bytes, and its estimated tokens."""
        latest = now + LONGEST_SECONDS
        at = max(now, min(self.requests_at, latest), min(self.tokens_at, latest))
        tokens = size * self.tokens_per_byte
        self.requests_at = at + quota.request_seconds
        self.tokens_at = at + tokens * quota.token_seconds
        return at, tokens

    def settle(self, quota: Quota, size: int, estimate: float, used: int) -> None:
        """Correct the estimate of a request by the tokens that it has used."""
        self.tokens_at += (used - estimate) * quota.token_seconds
        self.tokens_per_byte += NEWEST_SHARE * (used / max(size, 1) - self.tokens_per_byte)


def wait_for_turn(connection: Connection, key: TurnKey, quota: Quota, size: int) -> float:
    """Return the seconds until the turn of a request with `size` bytes.

    It keeps its turn until `settle_turn`.
    """
    schedule, now = _locked_schedule(connection, key.endpoint), _store_time(connection)
    turn: float | None = connection.scalar(select(TURNS.c.at).where(key.row))
    if turn is not None and now - LATE_SECONDS <= turn <= now + 2 * LONGEST_SECONDS:
        return max(0.0, turn - now)
    old = (TURNS.c.endpoint == key.endpoint) & (TURNS.c.at < now - LONGEST_SECONDS)
    connection.execute(delete(TURNS).where(key.row | old))
    at, tokens = schedule.take_turn(now, quota, size)
    connection.execute(insert(TURNS).values(**asdict(key), at=at, size=size, tokens=tokens))
    _save_schedule(connection, key.endpoint, schedule)
    return at - now


def settle_turn(connection: Connection, key: TurnKey, quota: Quota, used: int | None) -> None:
    """Give up the turn; `used` are the tokens of the call, None if they are unknown."""
    schedule = _locked_schedule(connection, key.endpoint)
    turn = connection.execute(select(TURNS).where(key.row)).first()
    if turn is not None and used is not None:
        schedule.settle(quota, turn.size, turn.tokens, used)
        _save_schedule(connection, key.endpoint, schedule)
    connection.execute(delete(TURNS).where(key.row))


def postpone_turns(connection: Connection, endpoint: str, seconds: float) -> None:
    """Let no turn begin before so many seconds, since the endpoint refuses requests until then."""
    schedule, now = _locked_schedule(connection, endpoint), _store_time(connection)
    coming = (TURNS.c.endpoint == endpoint) & (TURNS.c.at > now)
    free = max(now, schedule.requests_at, schedule.tokens_at)
    first = connection.scalar(select(func.min(TURNS.c.at)).where(coming)) or free
    if (delay := now + seconds - first) > 0:
        connection.execute(update(TURNS).where(coming).values(at=TURNS.c.at + delay))
        schedule.requests_at = free + delay
        _save_schedule(connection, endpoint, schedule)


def _locked_schedule(connection: Connection, endpoint: str) -> Schedule:
    """Return the endpoint's schedule; other transactions wait until this one ends."""
    columns = (ENDPOINTS.c.requests_at, ENDPOINTS.c.tokens_at, ENDPOINTS.c.tokens_per_byte)
    query = select(*columns).where(ENDPOINTS.c.endpoint == endpoint).with_for_update()
    if (row := connection.execute(query).first()) is None:
        connection.execute(NEW_ENDPOINT, {"endpoint": endpoint, **asdict(Schedule())})
        row = connection.execute(query).one()
    return Schedule(*row)


def _save_schedule(connection: Connection, endpoint: str, schedule: Schedule) -> None:
    own = ENDPOINTS.c.endpoint == endpoint
    connection.execute(update(ENDPOINTS).where(own).values(**asdict(schedule)))


def _store_time(connection: Connection) -> float:
    """Return the time that all workers of the store share."""
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.scalar(text("SELECT extract(epoch FROM clock_timestamp())")) or 0.0)
