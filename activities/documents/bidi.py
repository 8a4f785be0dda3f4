"""Lines of Arabic and Hebrew in the order in which they are read, by where their letters stand."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence, Set
from itertools import groupby

_RIGHT_TO_LEFT = {"R", "AL"}
_NUMBERS = {"EN", "AN"}
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")


def is_right_to_left(text: str) -> bool:
    """Whether it has a letter of a script that is read from right to left."""
    return not text.isascii() and any(
        unicodedata.bidirectional(letter) in _RIGHT_TO_LEFT for letter in text
    )


def reading_order(
    letters: Sequence[str],
    left_edge: Callable[[int], float],
    right_edge: Callable[[int], float],
    gap: float,
    spaces: Set[int] = frozenset(),
) -> str:
    """The letters of a line, of which some are read from right to left.

    Args:
        letters: Without spaces.
        left_edge, right_edge: Where the letter of a number begins and ends, from the left.
        gap: From which width on one between two letters is a space.
        spaces: Numbers of letters that have a space before them in the order that is given.
    """
    classes = [unicodedata.bidirectional(letter) for letter in letters]
    points, bases = _attach_points(letters, left_edge, right_edge)
    strong = [classes[n] for n in bases if classes[n] in ("L", *_RIGHT_TO_LEFT)]
    backwards = 2 * strong.count("L") < len(strong)
    # Letters of one ligature stand in one place, and come in the order of reading.
    ordered = sorted(bases, key=lambda n: (left_edge(n), -n if classes[n] in _RIGHT_TO_LEFT else n))
    tokens: list[int | None] = []
    for before, number in zip([None, *ordered], ordered, strict=False):
        if before is not None:
            known = abs(number - before) == 1 and max(number, before) in spaces
            tokens += [None] if known or left_edge(number) - right_edge(before) > gap else []
        tokens.append(number)
    if backwards:
        tokens.reverse()
    kinds = _reading_directions(tokens, classes, backwards)
    parts: list[str] = []
    for ahead, run in groupby(zip(tokens, kinds, strict=True), key=lambda pair: pair[1]):
        places = [place for place, _ in run]
        for place in reversed(places) if ahead == backwards else places:
            if place is None:
                parts.append(" ")
                continue
            letter = letters[place]
            parts.append(letter if ahead else letter.translate(_MIRRORED))
            parts += points.get(place, [])
    return "".join(parts)


def _attach_points(
    letters: Sequence[str], left_edge: Callable[[int], float], right_edge: Callable[[int], float]
) -> tuple[dict[int, list[str]], list[int]]:
    """The points of each letter, and the letters without them."""
    bases = [n for n, letter in enumerate(letters) if not unicodedata.combining(letter)]
    points: dict[int, list[str]] = {}
    for number, letter in enumerate(letters):
        if bases and unicodedata.combining(letter):
            middle = (left_edge(number) + right_edge(number)) / 2
            nearest = min(bases, key=lambda n: abs((left_edge(n) + right_edge(n)) / 2 - middle))
            points.setdefault(nearest, []).append(letter)
    return points, bases


def _reading_directions(
    tokens: list[int | None], classes: list[str], backwards: bool
) -> list[bool]:
    """For each place whether it is read from left to right; what has no direction of its own goes
    with both its neighbours where they agree, else with the line."""
    known: list[bool | None] = []
    for number in tokens:
        kind = "WS" if number is None else classes[number]
        known.append(
            True if kind in ("L", *_NUMBERS) else False if kind in _RIGHT_TO_LEFT else None
        )
    result: list[bool] = []
    for place, direction in enumerate(known):
        if direction is not None:
            result.append(direction)
            continue
        before = result[-1] if result else not backwards
        after = next(
            (known_direction for known_direction in known[place:] if known_direction is not None),
            not backwards,
        )
        result.append(before if before == after else not backwards)
    return result
