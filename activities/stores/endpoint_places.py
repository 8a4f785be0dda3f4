"""Requests that are under way at an endpoint, where only so many may be at once.

A place is a lease: its worker renews it, and after a kill it is free within seconds.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from activities.stores.schema import PLACES

LEASE_SECONDS = 30.0
RENEW_SECONDS = 5.0
LATEST_SECONDS = 2 * LEASE_SECONDS
"""A lease that ends later was given before the clock was set back by more than a lease."""

_OF = PLACES.c.endpoint == bindparam("of")
_IS_TAKEN = PLACES.c.until.between(bindparam("now"), bindparam("now") + LATEST_SECONDS)
_COUNT = select(func.count(), func.max(PLACES.c.since)).where(_OF, _IS_TAKEN)
_DROP_OLD = delete(PLACES).where(_OF, ~_IS_TAKEN)
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

    def count(self) -> tuple[int, float]:
        """Return how many places are taken, and for how many seconds the newest has been."""
        of = {"of": self.endpoint, "now": self.now}
        taken, since = self.connection.execute(_COUNT, of).one()
        return taken, max(0.0, self.now - since) if taken else 0.0

    def has(self, holder: str) -> bool:
        of = {"of": self.endpoint, "by": holder}
        return self.connection.scalar(_FIND_SINCE, of) is not None

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
