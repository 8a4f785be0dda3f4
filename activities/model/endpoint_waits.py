"""When an endpoint wants to be asked again: it says so in headers, in its error, or in words."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from activities.model.endpoint_wordings import WAIT_WORDS

LEAST, MOST = 1.0, 3600.0
"""No hot loop, whatever an endpoint says (0, -1, nan), and no job that sleeps for days."""
EPOCH = 1e9
"""From here on a number is a point in time and no duration, in seconds."""
_UNITS = {"ms": 0.001, "mill": 0.001, "m": 60.0, "s": 1.0, "h": 3600.0}
"""Seconds of a unit, by its beginning."""
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµ]*)", re.IGNORECASE)
_KEYS = re.compile(r"retry_?(after|delay|in)(_?(ms|seconds?))?|wait_?seconds", re.IGNORECASE)
_RESETS = re.compile(r"(x-)?ratelimit-reset(-\w+)?", re.IGNORECASE)


def named_wait_seconds(headers: Mapping[str, str], body: object, text: str) -> float | None:
    """Return the seconds until the endpoint wants to be asked again; None if it does not say."""
    places = (
        _scaled(headers.get("retry-after-ms"), 0.001),
        header_seconds(headers.get("retry-after"), headers),
        next(_body_seconds(body, headers), None),
        _words_seconds(text),
        _reset_seconds(headers),
    )
    seconds = next((each for each in places if each is not None), None)
    return None if seconds is None else max(LEAST, min(seconds, MOST))


def _scaled(value: object, unit: float) -> float | None:
    with suppress(TypeError, ValueError):
        return float(value) * unit  # type: ignore[arg-type]
    return None


def header_seconds(value: str | None, headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a header that has a number, a duration or a date."""
    if not value:
        return None
    if (number := _scaled(value, 1)) is not None:
        return _until(number, headers)
    with suppress(ValueError):
        return _epoch_seconds(parsedate_to_datetime(value)) - _clock_time(headers)
    with suppress(ValueError):
        return _epoch_seconds(datetime.fromisoformat(value)) - _clock_time(headers)
    return _duration_seconds(value)


def _until(number: float, headers: Mapping[str, str]) -> float:
    """Return a duration; of a point in time, in seconds or milliseconds, the time until then."""
    if number > EPOCH * 100:
        number /= 1000
    return number - _clock_time(headers) if EPOCH < number < EPOCH * 100 else number


def _duration_seconds(text: str) -> float | None:
    """Return the seconds of `1m30.5s`, `350ms` or `20 seconds`."""
    rest, total = text.strip(), 0.0
    while match := _PART.match(rest):
        unit = match[2].lower()
        scale = next((_UNITS[unit[:size]] for size in (4, 2, 1) if unit[:size] in _UNITS), None)
        if unit and scale is None:
            return None
        total += float(match[1]) * (scale or 1.0)
        rest = rest[match.end() :].lstrip()
    return None if rest or not text.strip() else total


def _body_seconds(value: object, headers: Mapping[str, str], depth: int = 0) -> Iterator[float]:
    """Yield the times that an error has in fields, such as Google's `RetryInfo`."""
    if depth > 6:
        return
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            yield from _body_seconds(json.loads(value), headers, depth + 1)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if _KEYS.fullmatch(str(key)):
                unit = 0.001 if str(key).lower().endswith("ms") else 1.0
                seconds = _scaled(inner, unit)
                if seconds is None and isinstance(inner, str):
                    seconds = header_seconds(inner, headers)
                if seconds is not None:
                    yield seconds
            elif isinstance(inner, dict) and key == "headers":
                lower = {str(name).lower(): str(each) for name, each in inner.items()}
                retry = header_seconds(lower.get("retry-after"), headers)
                wait = _reset_seconds(lower) if retry is None else retry
                if wait is not None:
                    yield wait
            else:
                yield from _body_seconds(inner, headers, depth + 1)
    elif isinstance(value, list):
        for inner in value[:20]:
            yield from _body_seconds(inner, headers, depth + 1)


def _words_seconds(text: str) -> float | None:
    match = WAIT_WORDS.search(text)
    return _duration_seconds(match[1]) if match else None


def _reset_seconds(headers: Mapping[str, Any]) -> float | None:
    """Return when the last of the limits that are used up is renewed."""
    waits = []
    for name, value in headers.items():
        if _RESETS.fullmatch(name):
            remaining = headers.get(name.replace("reset", "remaining"))
            seconds = header_seconds(str(value), headers)
            if seconds is not None and _scaled(remaining or 0, 1) == 0:
                waits.append(seconds)
    return max(waits, default=None)


def _clock_time(headers: Mapping[str, str]) -> float:
    """Return when the endpoint answered, by its own clock if it says: ours may be an hour off."""
    try:
        return _epoch_seconds(parsedate_to_datetime(headers.get("date", "")))
    except ValueError:
        return time.time()


def _epoch_seconds(date: datetime) -> float:
    return date.replace(tzinfo=date.tzinfo or UTC).timestamp()
