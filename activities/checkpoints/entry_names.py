"""Reversible escaping of file names to git tree entry names.

Git refuses `.git` and names that some file system treats as `.git`, and tools that read a
repository fail on names that are not UTF-8. Unsafe bytes of a name are stored as `%XX`.
"""

import re
from functools import lru_cache

# Upper-case hex only: names starting with `%s` or `%n` are reserved for the store's own entries.
_UNSAFE = re.compile(
    "["
    "%~:\\\\"
    "\x00-\x1f\x7f-\x9f"
    "\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff"  # ignored by HFS+ when it compares names
    "\udc80-\udcff"  # surrogateescape: bytes that are not UTF-8
    "]|^\\."
)
_ESCAPED = re.compile(rb"%([0-9A-F]{2})")


def name_to_bytes(name: str) -> bytes:
    """Encode a name; `surrogateescape` surrogates become the original bytes."""
    return name.encode("utf-8", "surrogateescape")


def name_from_bytes(raw: bytes) -> str:
    """The inverse of `name_to_bytes`."""
    return raw.decode("utf-8", "surrogateescape")


@lru_cache(maxsize=16_384)
def entry_name(name: str) -> bytes:
    """Return the tree entry name of a file name: valid UTF-8, determined by the name's bytes.

    Cached, since a step looks up the same few names dozens of times. Raises UnicodeEncodeError
    for a surrogate that encodes no byte.
    """
    # Normalize through bytes: two spellings of the same bytes must give one entry.
    return name_to_bytes(_UNSAFE.sub(_escape_entry_name_part, name_from_bytes(name_to_bytes(name))))


def unescape_name(entry: bytes) -> str:
    """Return the file name of a tree entry: the inverse of `entry_name`.

    Raises ValueError for an entry that is no file name (empty, `.`, `..`, or with `/` or NUL).
    Only a foreign repository has such entries; refusing them prevents path traversal.
    """
    raw = _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), entry) if b"%" in entry else entry
    if raw in {b"", b".", b".."} or b"/" in raw or b"\0" in raw:
        raise ValueError(f"The tree entry {entry!r} is not a file name.")
    return name_from_bytes(raw)


def _escape_entry_name_part(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in name_to_bytes(match[0]))


def stored_entry_name(name: bytes) -> bytes:
    return entry_name(name_from_bytes(name))


def unescaped_file_name(entry: bytes) -> bytes:
    return name_to_bytes(unescape_name(entry))
