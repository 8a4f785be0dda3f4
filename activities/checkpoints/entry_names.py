"""One reversible escape of a file name to a git tree entry name.

Git refuses `.git` and whatever some file system would take for it, and tools that read a
repository choke on names that are not UTF-8. Every such name is stored as `%XX` bytes instead.
"""

import re
from functools import lru_cache

# Upper-case hex only: names that start with `%s` or `%n` are left to the store's own entries.
_UNSAFE = re.compile(
    "["
    "%~:\\\\"
    "\x00-\x1f\x7f-\x9f"
    "\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff"  # ignored by HFS+ when it compares names
    "\udc80-\udcff"  # surrogateescape: bytes that are not UTF-8
    "]|^\\."
)
_ESCAPED = re.compile(rb"%([0-9A-F]{2})")


def to_bytes(name: str) -> bytes:
    """The bytes of a name; surrogates of `surrogateescape` become the bytes they stand for."""
    return name.encode("utf-8", "surrogateescape")


def from_bytes(raw: bytes) -> str:
    """The inverse of `to_bytes`."""
    return raw.decode("utf-8", "surrogateescape")


@lru_cache(maxsize=16_384)
def entry_name(name: str) -> bytes:
    """The tree entry name of one file name: a function of the name's bytes, valid UTF-8.

    A step asks for the same few dozens of times. Raises UnicodeEncodeError for a lone surrogate
    that stands for no byte.
    """
    # Through bytes first: two spellings of the same bytes must give one entry.
    return to_bytes(_UNSAFE.sub(_percent_escape, from_bytes(to_bytes(name))))


def unescape_name(entry: bytes) -> str:
    """The file name of a tree entry: the inverse of `entry_name`.

    Raises ValueError for an entry that is no file name (`/` in it, `.`, `..`, NUL), which only a
    repository made by someone else can hold, so that it cannot lead out of a folder.
    """
    raw = _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), entry) if b"%" in entry else entry
    if raw in {b"", b".", b".."} or b"/" in raw or b"\0" in raw:
        raise ValueError(f"The tree entry {entry!r} is not a file name.")
    return from_bytes(raw)


def _percent_escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in to_bytes(match[0]))
