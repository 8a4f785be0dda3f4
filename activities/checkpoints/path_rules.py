"""The path rules, on strings. The opened file is checked where files are opened."""

import re

from activities.checkpoints.checkpoint_errors import PathRefused, quote_path_in_error
from activities.checkpoints.entry_names import name_from_bytes, name_to_bytes

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
