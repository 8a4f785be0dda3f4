"""Recognise text that looks like a credential, and redact it, also in arguments shown to people."""

import json
import logging
import math
import re
from collections import Counter
from functools import cache
from typing import Any

from activities.redaction.credentials import HIDDEN, hide_credentials
from activities.text.safe_text import replace_surrogates
from config.guard_files import read_guards
from config.layers import SHIPPED
from config.regexes import compile_cached_regex, regexes_that_may_match
from config.schema.guards import Match

_NAMES = re.compile(r"[A-Za-z_]\w*(?P<part>\.[A-Za-z_]\w*)*[.,;]*")
"""A name, or an attribute such as `settings.key2`."""
MOST_DIGITS = 4
"""Maximum of digits in such a name, as in `base64.b64decode`; keys have more."""


def looks_random(text: str, bits: float) -> bool:
    """Return whether a text has letters and digits and at least this entropy per character."""
    mixed = any(char.isdigit() for char in text) and any(char.isalpha() for char in text)
    return mixed and entropy(text) >= bits


def entropy(text: str) -> float:
    """Return the Shannon entropy, in bits per character."""
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts)


def is_secret(hit: Any, bits: float) -> bool:
    """Return whether a match's group `value` looks random and is not code.

    Code has no quotes: `secret = hashlib.sha256(seed)`, `api_key=settings.key2`.
    """
    start, end = hit.span(hit.re.groupindex["value"])
    text, value = hit.string, hit.group("value")
    names, bare = _NAMES.fullmatch(value), text[start - 1 : start] not in ('"', "'")
    few = sum(map(str.isdigit, value)) <= MOST_DIGITS
    if bare and few and names and (names["part"] or text[end : end + 1] == "("):
        return False
    return looks_random(value, bits)


def redact(text: str) -> str:
    """Return the text without this worker's credentials and anything that looks like one.

    Surrogates are replaced too: an endpoint's message may be cut in the middle of a character.
    """
    match, text = _secret_text_match(), replace_surrogates(hide_credentials(text))
    for pattern in regexes_that_may_match(tuple(match.content), text):
        text = compile_cached_regex(pattern).sub(_make_replacer(match.random or 0), text)
    return text


class RedactingFormatter(logging.Formatter):
    """Redacts log records, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def _make_replacer(bits: float) -> Any:
    def replace_secret(hit: Any) -> str:
        matched: str = hit.group(0)
        if "value" not in hit.re.groupindex:
            return HIDDEN
        return matched.replace(hit.group("value"), HIDDEN) if is_secret(hit, bits) else matched

    return replace_secret


@cache
def _secret_text_match() -> Match:
    [(_, guard)] = read_guards(SHIPPED / "guards" / "secrets.yaml")
    return guard.match


MAX_CHARACTERS = 16_000
"""Total size of all arguments, since they go into history and onto a screen."""


def show_arguments(arguments: dict[str, Any]) -> dict[str, str]:
    """Return each argument as redacted text; cut ones say how many characters are missing."""
    most = MAX_CHARACTERS // max(1, len(arguments))
    return {
        name: _cut_argument(redact(_argument_text(value)), most)
        for name, value in arguments.items()
    }


def _argument_text(value: Any) -> str:
    if isinstance(value, str):
        return replace_surrogates(value)
    return replace_surrogates(
        json.dumps(value, ensure_ascii=False, default=lambda model: model.model_dump())
    )


def _cut_argument(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]} [{len(text) - most:,} more characters are not shown]"
