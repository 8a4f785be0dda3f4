"""The limits that an endpoint names in the headers of its answers."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from activities.model.endpoint_waits import header_seconds
from activities.stores.learned_quota import NamedLimits

_HEADER = re.compile(r"(?:x-|anthropic-)*rate-?limit-([a-z_-]+)", re.IGNORECASE)
_FIELDS = frozenset({"limit", "remaining", "reset"})
_UNITS = {"requests": "requests", "req": "requests", "tokens": "tokens"}
_MINUTES = {"second": 1 / 60, "minute": 1.0}
"""Minutes of the periods that calls are spread over. Longer ones end in a refusal that says when to
ask again."""
LEAST = {"requests": 1.0, "tokens": 1000.0}
"""A minute. What an endpoint names below is not believed: it would stop every job."""


class _Named(NamedTuple):
    field: str
    unit: str
    minutes: float
    value: str


def read_rate_headers(headers: Mapping[str, str]) -> NamedLimits:
    """Return the limits a minute; nothing of those without a unit, whose period nobody knows.

    A limit without a period is one of a minute. A limit of a day that does not say so then limits
    nothing.
    """
    named = list(_list_named(headers))
    left = next(iter(_values(named, "remaining", "tokens")), None)
    reset = next(iter(_values(named, "reset", "tokens")), None)
    return NamedLimits(
        min(_limits(named, "requests"), default=None),
        min(_limits(named, "tokens"), default=None),
        _positive(left) if left else None,
        header_seconds(reset, headers) if reset else None,
    )


def _limits(named: list[_Named], unit: str) -> Iterator[float]:
    for each in named:
        if (each.field, each.unit) == ("limit", unit):
            rate = (_positive(each.value) or 0.0) / each.minutes
            yield from [rate] if rate >= LEAST[unit] else []


def _values(named: list[_Named], field: str, unit: str) -> Iterator[str]:
    for each in named:
        if (each.field, each.unit, each.minutes) == (field, unit, 1.0):
            yield each.value


def _list_named(headers: Mapping[str, str]) -> Iterator[_Named]:
    for name, value in headers.items():
        if match := _HEADER.fullmatch(name):
            words = set(re.split("[-_]", match[1].lower()))
            fields, periods = words & _FIELDS, words & _MINUTES.keys()
            units = words & _UNITS.keys()
            # What has other words is another limit, such as of input tokens or of a day.
            if words == fields | units | periods and len(fields) == len(units) == 1:
                [field], [unit] = fields, units
                minutes = _MINUTES[next(iter(periods))] if len(periods) == 1 else 1.0
                yield _Named(field, _UNITS[unit], minutes, value)


def _positive(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 < number < 1e12 else None
