"""In-memory cache of git objects keyed by content hash; entries cannot go stale."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Values by key, shared by all threads. Callers must not modify a cached value.

    A step makes some hundred lookups, so there is no lock and no LRU order: a full cache is
    cleared.
    """

    def __init__(self, limit: int, weigh: Callable[[V], int]) -> None:
        """`limit`: maximum total weight of all values, as measured by `weigh`."""
        self._values: dict[K, V] = {}
        self._weight = 0
        self._limit = limit
        self._weigh = weigh
        self.get: Callable[[K], V | None] = self._values.get

    def put(self, key: K, value: V) -> V:
        """Store a value and return it."""
        # A race between threads costs at worst a recomputed value and an inexact weight.
        if key not in self._values:
            self._weight += self._weigh(value)
            if self._weight > self._limit:
                self._values.clear()
                self._weight = self._weigh(value)
            self._values[key] = value
        return value

    def clear(self) -> None:
        """Remove all values."""
        self._values.clear()
        self._weight = 0
