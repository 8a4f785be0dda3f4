"""Credentials of this worker, found by value and hidden wherever text leaves the worker.

Sources: environment variables named like a credential (`…_KEY`, `…_TOKEN`, `…_PASSWORD`, …) or
named by the configuration, passwords within addresses, and the headers sent by git and with traces
and metrics.
"""

import json
import os
import re
from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

HIDDEN = "[redacted]"
MIN_CHARACTERS = 8
"""Shorter values are not hidden: replacing them would tear words apart."""
WORD = 16
"""Values of letters only that are shorter than this count as words, not credentials."""
_NAME = re.compile(
    r"(?:^|_)(?:KEYS?|TOKENS?|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIALS?)$",
    re.IGNORECASE,
)
_HEADERS = re.compile(r"OTEL_EXPORTER_OTLP_(?:[A-Z]+_)?HEADERS")
_GIT_HEADER = re.compile(r"http\.(?:.+\.)?extraheader", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"://[^\s/@]*:([^\s/@]+)@")
ORDINARY = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "TZ", "TMPDIR", "TERM"}
)
"""Variables that hold no credential, even if the configuration passes them on."""
_named: set[str] = set()
_given: deque[str] = deque(maxlen=200)
"""Values from commands rather than variables, newest last."""


def credential_value(variable: str) -> str | None:
    """Return the variable's value, and hide it from now on."""
    register_credential_variables([variable])
    return os.environ.get(variable)


def api_key_credential(variable: str) -> str:
    """Return the variable's value without surrounding white space; empty if it is not set.

    Raises:
        ValueError: No header can carry it; a client would report that as the endpoint's fault.
    """
    key = (credential_value(variable) or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("has characters that no key has")
    return key


def register_credential_variables(variables: Iterable[str]) -> None:
    """Hide the variables' values from now on, whether or not they are ever read."""
    _named.update(set(variables) - ORDINARY)


def hide_printed_credential(value: str) -> None:
    """Hide a credential that a command printed."""
    if value not in _given:
        _given.append(value)
        refresh_credential_values()


def hide_credentials(text: str) -> str:
    """Replace the values of this worker's credentials in the text."""
    for value in _credential_values(len(_named)):
        if value in text:
            text = text.replace(value, HIDDEN)
    return text


def hide_in_bytes(data: bytes) -> bytes:
    """Replace the values of this worker's credentials in the content of a file."""
    for value in _credential_values(len(_named)):
        data = data.replace(os.fsencode(value), HIDDEN.encode())
    return data


def hide_in_json(written: bytes) -> bytes:
    """Replace credentials in JSON, including JSON nested in its strings."""
    for value in _json_credential_values(len(_named)):
        written = written.replace(value, HIDDEN.encode())
    return written


def refresh_credential_values() -> None:
    """Drop the cached values, after a command printed one or a test changed the environment."""
    _credential_values.cache_clear()
    _json_credential_values.cache_clear()


def without_credentials(address: str) -> str:
    """Return an address without user, password, query and fragment, safe to show and store."""
    parts = urlsplit(address)
    netloc = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=netloc, query="", fragment="").geturl()


@lru_cache(maxsize=1)
def _credential_values(named: int) -> list[str]:
    """Return the values to hide, longest first because one may be part of another.

    Cached, because a worker's environment does not change and is too slow to read at every step.
    `named`, the number of known names, is the cache key.
    """
    values: set[str] = set(_given)
    for name, value in os.environ.items():
        if name in _named or _NAME.search(name):
            # Codec keys are listed with their ids, several in one variable.
            values |= {value, *re.split(r"[,:\s]+", value)}
        if _HEADERS.fullmatch(name):
            # Format: `Authorization=Bearer%20…,api-key=…`.
            for pair in value.split(","):
                decoded = unquote(pair.partition("=")[2]).strip()
                values |= {pair.partition("=")[2].strip(), decoded, *decoded.split()}
        if name.startswith("GIT_CONFIG_KEY_") and _GIT_HEADER.fullmatch(value):
            header = os.environ.get(name.replace("_KEY_", "_VALUE_"), "")
            values |= set(header.partition(":")[2].split())
        if "://" in value:
            for password in _IN_ADDRESS.findall(value):
                values |= {password, unquote(password)}
    distinctive = [x for x in values if len(x) >= (WORD if x.isalpha() else MIN_CHARACTERS)]
    return sorted(distinctive, key=len, reverse=True)


@lru_cache(maxsize=1)
def _json_credential_values(named: int) -> list[bytes]:
    """Return the values as escaped in JSON, once and twice: call arguments are nested JSON."""
    once = [_escape_credential_json(value) for value in _credential_values(named)]
    every = dict.fromkeys(
        value for escaped in once for value in (_escape_credential_json(escaped), escaped)
    )
    return [value.encode("utf-8", "replace") for value in every]


def _escape_credential_json(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


def encode_without_credentials(value: Any) -> bytes:
    """Encode a part of a request as the bytes to send, with credentials hidden.

    Files that no tool has shown may contain a credential and appear in the system prompt and in
    prompts for judges and summaries. Checking each part once covers them.
    """
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return hide_in_json(written.encode("utf-8", "replace"))
