"""Requests that are under way at an endpoint, where only so many may be at once.

A place is a lease: its worker renews it, and after a kill it is free within seconds.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from activities.stores.schema import PLACES

LEASE_SECONDS = 30.0
RENEW_SECONDS = 8.0
"""A worker may miss two renewals and keeps its places."""

_OF = PLACES.c.endpoint == bindparam("of")
# A lease that lies further ahead was given before the clock was set back.
_COUNT = select(func.count()).where(
    _OF, PLACES.c.until > bindparam("now"), PLACES.c.until <= bindparam("now") + LEASE_SECONDS
)
_DROP_OLD = delete(PLACES).where(
    _OF, ~PLACES.c.until.between(bindparam("now"), bindparam("now") + LEASE_SECONDS)
)
_OWN = PLACES.c.holder == bindparam("by")
_FIND_SINCE = select(PLACES.c.since).where(_OF, _OWN)
_LEAVE = delete(PLACES).where(_OF, _OWN)
_RENEW = update(PLACES).where(_OF, _OWN).values(until=bindparam("later"))


@dataclass(frozen=True)
class EndpointPlaces:
    """The places of an endpoint in the transaction of its turns."""

    connection: Connection
    endpoint: str
    now: float
    """Seconds of the store's clock."""

    def count(self) -> int:
        of = {"of": self.endpoint, "now": self.now}
        return self.connection.scalar(_COUNT, of) or 0

    def take(self, holder: str) -> None:
        self.connection.execute(_DROP_OLD, {"of": self.endpoint, "now": self.now})
        row = {"endpoint": self.endpoint, "holder": holder}
        until = self.now + LEASE_SECONDS
        self.connection.execute(insert(PLACES).values(**row, since=self.now, until=until))

    def leave(self, holder: str) -> float | None:
        """Free a place; return for how many seconds it was taken, None if it was not."""
        of = {"of": self.endpoint, "by": holder}
        since = self.connection.scalar(_FIND_SINCE, of)
        self.connection.execute(_LEAVE, of)
        return None if since is None else max(0.0, self.now - since)

    def renew(self, holders: list[str]) -> None:
        later = self.now + LEASE_SECONDS
        rows = [{"of": self.endpoint, "by": holder, "later": later} for holder in holders]
        self.connection.execute(_RENEW, rows)
