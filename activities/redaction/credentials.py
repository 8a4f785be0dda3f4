"""Credentials that this worker was given, by their value: hidden wherever they would be told.

They are those variables of the environment whose name says so (`…_KEY`, `…_TOKEN`, `…_PASSWORD`,
…), those that the configuration names as holding one, passwords within addresses, and the headers
that traces and metrics are sent with, or that git sends.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote, urlsplit

HIDDEN = "[redacted]"
MIN_CHARACTERS = 8
"""Characters: hiding less would tear words apart."""
WORD = 16
"""Letters alone are taken for a word, not a credential, below so many characters."""
_NAME = re.compile(
    r"(?:^|_)(?:KEYS?|TOKENS?|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIALS?)$",
    re.IGNORECASE,
)
_HEADERS = re.compile(r"OTEL_EXPORTER_OTLP_(?:[A-Z]+_)?HEADERS")
_GIT_HEADER = re.compile(r"http\.(?:.+\.)?extraheader", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"://[^\s/@]*:([^\s/@]+)@")
_named: set[str] = set()
_given: deque[str] = deque(maxlen=200)
"""Values that no variable holds, the newest last."""


def credential_value(variable: str) -> str | None:
    """The value of a variable that the configuration says holds a credential."""
    _named.add(variable)
    return os.environ.get(variable)


def api_key(variable: str) -> str:
    """The key that it holds, without white space around it; empty where there is none.

    Raises:
        ValueError: no header can hold it, which a client would tell as its endpoint's fault.
    """
    key = (credential_value(variable) or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("has characters that no key has")
    return key


def register_variables(variables: Iterable[str]) -> None:
    """Their values are hidden from here on, whether they have been used or not."""
    _named.update(variables)


def hide_value(value: str) -> None:
    """A credential that a command gave is hidden from here on."""
    if value not in _given:
        _given.append(value)
        refresh_values()


def hide_credentials(text: str) -> str:
    """The text without the values of this worker's credentials."""
    for value in _credential_values(len(_named)):
        if value in text:
            text = text.replace(value, HIDDEN)
    return text


def hide_in_json(written: bytes) -> bytes:
    """The same of JSON, in which some characters are escaped, and of JSON in its strings."""
    for value in _json_values(len(_named)):
        written = written.replace(value, HIDDEN.encode())
    return written


def refresh_values() -> None:
    """The values are others: a command gave one, or the environment of a test is another."""
    _credential_values.cache_clear()
    _json_values.cache_clear()


def without_credentials(address: str) -> str:
    """An address as it may be told and kept: without user, password, query and fragment."""
    parts = urlsplit(address)
    netloc = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=netloc, query="", fragment="").geturl()


@lru_cache(maxsize=1)
def _credential_values(named: int) -> list[str]:
    """The longest first, since one may be part of another.

    A worker's environment stays as it was when the worker began, and reading it costs too much to
    be done at every step; once more names are known, `named` in all, it is read again.
    """
    values: set[str] = set(_given)
    for name, value in os.environ.items():
        if name in _named or _NAME.search(name):
            # Keys of the codec stand there with their ids, several in a row.
            values |= {value, *re.split(r"[,:\s]+", value)}
        if _HEADERS.fullmatch(name):
            # As in `Authorization=Bearer%20…,api-key=…`.
            for pair in value.split(","):
                decoded = unquote(pair.partition("=")[2]).strip()
                values |= {pair.partition("=")[2].strip(), decoded, *decoded.split()}
        if name.startswith("GIT_CONFIG_KEY_") and _GIT_HEADER.fullmatch(value):
            header = os.environ.get(name.replace("_KEY_", "_VALUE_"), "")
            values |= set(header.partition(":")[2].split())
        if "://" in value:
            for password in _IN_ADDRESS.findall(value):
                values |= {password, unquote(password)}
    return sorted(filter(_is_telling, values), key=len, reverse=True)


@lru_cache(maxsize=1)
def _json_values(named: int) -> list[bytes]:
    """The same as they stand in JSON: arguments of calls are JSON in a string of it."""
    once = [_escape_json(value) for value in _credential_values(named)]
    every = dict.fromkeys(value for escaped in once for value in (_escape_json(escaped), escaped))
    return [value.encode("utf-8", "replace") for value in every]


def _escape_json(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


def _is_telling(value: str) -> bool:
    return len(value) >= (WORD if value.isalpha() else MIN_CHARACTERS)
