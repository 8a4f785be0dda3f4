"""Reads JSON that others wrote: what is accepted can be written again and handed over unchanged."""

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 100
"""Deepest nesting; what writes a result gives up at about twice that."""
MAX_DIGITS = 300
"""Most characters of an integer; a float ends at 309 digits."""
_PLAIN_KEY = re.compile(r"[A-Za-z_]\w{0,60}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_INFINITY = float("inf")


def read_json_value(text: str) -> Any:
    """Return the value of a JSON text.

    Raises ValueError: it is not valid JSON, or has a doubled key, a number that is not finite, half
    of a character, or too many levels; the message names the place.
    """
    doubled: list[tuple[dict[str, Any], str]] = []

    def read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for key, each in pairs:
            if key in value:
                doubled.append((value, key))
            value[key] = each
        return value

    try:
        value = json.loads(text, parse_int=_read_integer, object_pairs_hook=read_object)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"not valid JSON in line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    _check_json_value(value, {id(each): key for each, key in doubled})
    return value


def _check_json_value(value: Any, doubled: dict[int, str]) -> None:
    """Raise ValueError for what cannot be handed over, with its place."""
    for place, each, depth in _walk_values(value):
        if depth > MAX_DEPTH:
            raise ValueError(f"nested too deeply: more than {MAX_DEPTH} levels at {place[:200]}")
        problem = (
            f"the key {doubled[id(each)][:60]!r} stands twice"
            if isinstance(each, dict) and id(each) in doubled
            else _scalar_problem(each)
        )
        if problem:
            raise ValueError(f"{_SURROGATE.sub('?', place)[:300]}: {_SURROGATE.sub('?', problem)}")


def _scalar_problem(value: Any) -> str:
    """Return why a scalar, or a key of an object, cannot be handed over; empty if it can."""
    if isinstance(value, float) and not -_INFINITY < value < _INFINITY:
        return "not a finite number (NaN, Infinity, or too large for a float)"
    texts = [value] if isinstance(value, str) else value if isinstance(value, dict) else []
    if any(_SURROGATE.search(text) for text in texts):
        return (
            "the text holds half of a character (a lone surrogate such as \\ud83d); write it whole"
        )
    return ""


def _walk_values(value: Any) -> Iterator[tuple[str, Any, int]]:
    """Yield all values in order with place and depth; deep ones cost no stack."""
    pending = [("$", value, 0)]
    while pending:
        place, each, depth = pending.pop()
        yield place, each, depth
        if isinstance(each, dict):
            pending += [
                (_place_of_key(place, key), below, depth + 1)
                for key, below in reversed(each.items())
            ]
        elif isinstance(each, list):
            pending += [
                (f"{place}[{number}]", each[number], depth + 1)
                for number in range(len(each) - 1, -1, -1)
            ]


def _place_of_key(place: str, key: str) -> str:
    return f"{place}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{place}[{key[:60]!r}]"


def _read_integer(digits: str) -> int | float:
    """Return the integer; infinity for one that programs with floats alone would read as such."""
    return int(digits) if len(digits) <= MAX_DIGITS else _INFINITY
