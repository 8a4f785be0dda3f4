"""What looks like a credential, and text without it."""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from functools import cache
from typing import Any

from activities.redaction.credentials import HIDDEN, hide
from activities.text.plain import plain
from config.guard_files import read_guards
from config.loader import SHIPPED
from config.patterns import compiled, matching
from config.schema.guards import Match

_NAMES = re.compile(r"[A-Za-z_]\w*(?P<part>\.[A-Za-z_]\w*)*[.,;]*")
"""A name, or an attribute such as `settings.key2`."""
MOST_DIGITS = 4
"""In those of code, such as `base64.b64decode`; a key has more."""


def looks_random(text: str, bits: float) -> bool:
    """Whether a text is rather a key than words: letters and digits, so many bits a character."""
    mixed = any(char.isdigit() for char in text) and any(char.isalpha() for char in text)
    return mixed and entropy(text) >= bits


def entropy(text: str) -> float:
    """Shannon's, in bits per character."""
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts)


def telling(hit: Any, bits: float) -> bool:
    """Whether the group `value` of a match holds what looks random, and is not a piece of code.

    Code stands without quotes: `secret = hashlib.sha256(seed)`, `api_key=settings.key2`.
    """
    start, end = hit.span(hit.re.groupindex["value"])
    text, value = hit.string, hit.group("value")
    names, bare = _NAMES.fullmatch(value), text[start - 1 : start] not in ('"', "'")
    few = sum(map(str.isdigit, value)) <= MOST_DIGITS
    if bare and few and names and (names["part"] or text[end : end + 1] == "("):
        return False
    return looks_random(value, bits)


def found_in(text: str, match: Match) -> bool:
    """Whether one of the match's content patterns is in the text."""
    return any(
        "value" not in compiled(pattern).groupindex or telling(hit, match.random or 0)
        for pattern in matching(tuple(match.content), text)
        for hit in compiled(pattern).finditer(text)
    )


def redact(text: str) -> str:
    """The text without this worker's credentials and whatever else looks like one.

    It is to be told, and what an endpoint says may be cut in the middle of a character.
    """
    match, text = _secrets(), plain(hide(text))
    for pattern in matching(tuple(match.content), text):
        text = compiled(pattern).sub(_hide(match.random or 0), text)
    return text


class Redacting(logging.Formatter):
    """Hides credentials in what is logged, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def _hide(bits: float) -> Any:
    def hide(hit: Any) -> str:
        whole: str = hit.group(0)
        if "value" not in hit.re.groupindex:
            return HIDDEN
        return whole.replace(hit.group("value"), HIDDEN) if telling(hit, bits) else whole

    return hide


@cache
def _secrets() -> Match:
    [(_, guard)] = read_guards(SHIPPED / "guards" / "secrets.yaml")
    return guard.match
