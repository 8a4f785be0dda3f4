"""Reversible escaping of file names to git tree entry names.

Git refuses `.git` and names that some file system treats as `.git`, and tools that read a
repository fail on names that are not UTF-8. Unsafe bytes of a name are stored as `%XX`.
"""

import re
from functools import lru_cache

from activities.checkpoints.checkpoint_errors import PathRefused, quote_path_in_error

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
    return name.encode("utf-8", "surrogateescape")


def name_from_bytes(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def is_dot_git_name(name: str) -> bool:
    """Return whether the name is git's own folder, which git refuses and which is left out."""
    return name.lower() == ".git"


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


MAX_PATH_BYTES = 2048
MAX_NAME_BYTES = 255
# In a deeper tree, a projection would run out of a process's directory handles.
MAX_DEPTH = 200
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def parse_path(path: str, *, allow_root: bool = False) -> tuple[str, ...]:
    """Split a path relative to the workspace into names, without `.` and doubled slashes.

    With `allow_root`, `""` and `"."` return `()`. Raises PathRefused for everything that names
    nothing inside the workspace; the message says what to do.
    """
    try:
        raw = name_to_bytes(path)
    except UnicodeEncodeError:
        raise _path_rule_refusal(
            path, "holds a character no file name can have; use plain text"
        ) from None
    check_path_size(path)
    if path.startswith("/"):
        raise _path_rule_refusal(path, "is absolute; give it relative to the workspace")
    if "\\" in path:
        raise _path_rule_refusal(path, "holds a backslash; use / between folders")
    if _CONTROL.search(path):
        raise _path_rule_refusal(path, "holds a control character; use a plain name")
    parts = tuple(name_from_bytes(part) for part in raw.split(b"/") if part not in {b"", b"."})
    if ".." in parts:
        raise _path_rule_refusal(path, "holds ..; give it from the top of the workspace")
    if any(len(name_to_bytes(part)) > MAX_NAME_BYTES for part in parts):
        raise _path_rule_refusal(path, f"has a name over {MAX_NAME_BYTES} bytes; use a shorter one")
    if not parts and not allow_root:
        raise _path_rule_refusal(path, "names the workspace itself; name a file or folder in it")
    return parts


def check_path_size(path: str) -> None:
    """Raise PathRefused for a path with too many bytes or folders for the file system."""
    if len(name_to_bytes(path)) > MAX_PATH_BYTES:
        raise _path_rule_refusal(
            path, f"is longer than {MAX_PATH_BYTES:,} bytes; use a shorter one"
        )
    if path.count("/") >= MAX_DEPTH:
        raise _path_rule_refusal(path, f"is more than {MAX_DEPTH} folders deep; use fewer")


def _path_rule_refusal(path: str, why: str) -> PathRefused:
    return PathRefused(f"The path {quote_path_in_error(path)} {why}.")
