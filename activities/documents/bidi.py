"""Reading order of Arabic and Hebrew lines, from the positions of their letters."""

import unicodedata
from collections.abc import Callable, Sequence, Set
from itertools import groupby

_RIGHT_TO_LEFT = {"R", "AL"}
_NUMBERS = {"EN", "AN"}
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")


def is_right_to_left(text: str) -> bool:
    return not text.isascii() and any(
        unicodedata.bidirectional(letter) in _RIGHT_TO_LEFT for letter in text
    )


def order_bidi_letters(
    letters: Sequence[str],
    left_edge: Callable[[int], float],
    right_edge: Callable[[int], float],
    gap: float,
    spaces: Set[int] = frozenset(),
) -> str:
    """Return a line's letters in reading order; some of them are read from right to left.

    Args:
        letters: The letters, without spaces.
        left_edge, right_edge: Horizontal position where a letter, given by index, begins or ends.
        gap: Width from which a gap between two letters counts as a space.
        spaces: Indexes of letters that have a space before them in the given order.
    """
    classes = [unicodedata.bidirectional(letter) for letter in letters]
    points, bases = _attach_bidi_marks(letters, left_edge, right_edge)
    strong = [classes[n] for n in bases if classes[n] in ("L", *_RIGHT_TO_LEFT)]
    backwards = 2 * strong.count("L") < len(strong)
    # The letters of one ligature share a position and come in reading order.
    ordered = sorted(bases, key=lambda n: (left_edge(n), -n if classes[n] in _RIGHT_TO_LEFT else n))
    tokens: list[int | None] = []
    for before, number in zip([None, *ordered], ordered, strict=False):
        if before is not None:
            known = abs(number - before) == 1 and max(number, before) in spaces
            tokens += [None] if known or left_edge(number) - right_edge(before) > gap else []
        tokens.append(number)
    if backwards:
        tokens.reverse()
    kinds = _bidi_directions(tokens, classes, backwards)
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


def _attach_bidi_marks(
    letters: Sequence[str], left_edge: Callable[[int], float], right_edge: Callable[[int], float]
) -> tuple[dict[int, list[str]], list[int]]:
    """Return the combining marks of each letter, and the letters without them."""
    bases = [n for n, letter in enumerate(letters) if not unicodedata.combining(letter)]
    points: dict[int, list[str]] = {}
    for number, letter in enumerate(letters):
        if bases and unicodedata.combining(letter):
            middle = (left_edge(number) + right_edge(number)) / 2
            nearest = min(bases, key=lambda n: abs((left_edge(n) + right_edge(n)) / 2 - middle))
            points.setdefault(nearest, []).append(letter)
    return points, bases


def _bidi_directions(tokens: list[int | None], classes: list[str], backwards: bool) -> list[bool]:
    """Return for each position whether it is read from left to right.

    A neutral character takes the direction of its neighbours where they agree, else the line's.
    """
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
