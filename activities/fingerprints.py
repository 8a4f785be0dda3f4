"""Fingerprints: a few characters by which workflow code tells equal content from other."""

from __future__ import annotations

import json
import re
from hashlib import sha256

LENGTH = 8
MAX_ERROR = 500
_NAMES = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\S*[/\\]\S*|\S+\.\w+")
_NUMBERS = re.compile(r"\d[\d,.]*")


def of_text(text: str) -> str:
    """The same for equal texts."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:LENGTH]


def of_arguments(raw: str) -> str:
    """The same for arguments that mean the same, whatever their order and spacing."""
    try:
        return of_text(json.dumps(json.loads(raw or "{}"), sort_keys=True))
    except (ValueError, RecursionError):
        return of_text(raw)


def of_error(text: str) -> str:
    """The same for errors that differ in numbers, names and paths alone."""
    return of_text(_NUMBERS.sub("0", _NAMES.sub("x", text[:MAX_ERROR])))
