"""Fingerprints: a few characters by which workflow code tells equal content from other."""

from __future__ import annotations

import json
import re
from hashlib import sha256

LENGTH = 8
MAX_ERROR = 500
_NAMES = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\S*[/\\]\S*|\S+\.\w+")
_PASSING = re.compile(
    r"(?<!\d)(?:(\d+)\.\d+ ?(?:s|secs?|seconds)|\d+(?:\.\d+)? ?ms|\d+\.\d+ ?(?:µs|us|ns))\b"
    r"(?! ?(?:of|/) ?\d[\d.]* ?[smh])|0x[0-9a-f]{6,}"
)
"""How long something took, as test runners tell, and where in memory it was; not `3.2s of 60s`,
which tells how far it is. Not sought within a number: a long one would be read again from each of
its digits."""
_NUMBERS = re.compile(r"\d[\d,.]*")


def text_fingerprint(text: str) -> str:
    """The same for equal texts."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:LENGTH]


def result_fingerprint(text: str) -> str:
    """The same for results that differ in how long it took alone: no run of tests is like the last.

    Whole seconds tell: by them a command says that what it waits for goes on.
    """
    return text_fingerprint(_PASSING.sub("0", text))


def poll_fingerprint(text: str) -> str:
    """The same for a tool that is declared as polling, of whose seconds the whole ones tell in
    `running for 3.2 s` as well."""
    return text_fingerprint(_PASSING.sub(lambda match: match[1] or "0", text))


def arguments_fingerprint(raw: str) -> str:
    """The same for arguments that mean the same, whatever their order and spacing."""
    try:
        return text_fingerprint(json.dumps(json.loads(raw or "{}"), sort_keys=True))
    except (ValueError, RecursionError):
        return text_fingerprint(raw)


def error_fingerprint(text: str) -> str:
    """The same for errors that differ in numbers, names and paths alone."""
    return text_fingerprint(_NUMBERS.sub("0", _NAMES.sub("x", text[:MAX_ERROR])))
