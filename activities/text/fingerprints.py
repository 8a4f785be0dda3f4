"""Fingerprints: short hashes by which workflow code compares content."""

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
"""Durations as test runners print them, and memory addresses; not `3.2s of 60s`, which shows
progress. Never matched within a number: a long one would be rescanned from each digit."""
_NUMBERS = re.compile(r"\d[\d,.]*")


def text_fingerprint(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:LENGTH]


def result_fingerprint(text: str) -> str:
    """Return a fingerprint without durations, but with whole seconds, which show progress."""
    return text_fingerprint(_PASSING.sub("0", text))


def poll_fingerprint(text: str) -> str:
    """Like `result_fingerprint`, but for polling tools: whole seconds count in `running for 3.2 s`
    too."""
    return text_fingerprint(_PASSING.sub(lambda match: match[1] or "0", text))


def arguments_fingerprint(raw: str) -> str:
    try:
        return text_fingerprint(json.dumps(json.loads(raw or "{}"), sort_keys=True))
    except (ValueError, RecursionError):
        return text_fingerprint(raw)


def error_fingerprint(text: str) -> str:
    """Return a fingerprint of an error that ignores numbers, names and paths."""
    return text_fingerprint(_NUMBERS.sub("0", _NAMES.sub("x", text[:MAX_ERROR])))
