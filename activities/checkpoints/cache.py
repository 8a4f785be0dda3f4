"""What was read or made last, held by what names its content: it can never be stale."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Values by key, shared by all threads. Whoever gets one does not change it.

    One step looks some hundred times into it, so it takes no lock and remembers no order: what
    is full begins anew.
    """

    def __init__(self, limit: int, weigh: Callable[[V], int]) -> None:
        """`limit`: what all values together may weigh."""
        self._values: dict[K, V] = {}
        self._weight = 0
        self._limit = limit
        self._weigh = weigh
        self.get: Callable[[K], V | None] = self._values.get

    def put(self, key: K, value: V) -> V:
        """Hold a value and return it."""
        # Races between threads cost at worst a value that is made again, and some weight.
        if key not in self._values:
            self._weight += self._weigh(value)
            if self._weight > self._limit:
                self._values.clear()
                self._weight = self._weigh(value)
            self._values[key] = value
        return value

    def clear(self) -> None:
        """Hold nothing any more."""
        self._values.clear()
        self._weight = 0
