"""Renders a phase's changes to files as text of bounded size."""

from collections.abc import Callable

from pygit2 import Patch

from activities.checkpoints import Change, FileEntry, Files, diff_files
from activities.text.safe_text import replace_surrogates
from activities.text.tokens import clip_to_tokens
from activities.toolkit.path_ownership import is_system_path

MAX_BYTES = 200_000
MAX_TOKENS = 16_000
FILE_TOKENS = 4000
MAX_FILES = 200
LEFT_OUT = "this part is left out"


def phase_diff(
    before: Files,
    after: Files,
    *,
    is_left_out: Callable[[str], bool] = is_system_path,
    most: int = MAX_TOKENS,
) -> str:
    changes = [change for change in diff_files(before, after) if not is_left_out(change.path)]
    names = [
        f"{_phase_diff_change_word(change)} {replace_surrogates(change.path)}"
        for change in changes[:MAX_FILES]
    ]
    if (more := len(changes) - MAX_FILES) > 0:
        names.append(f"and {more:,} more")
    parts = ["\n".join(names) or "No file changed."]
    remaining = most * 8
    for change in changes[:MAX_FILES]:
        part = clip_to_tokens(_phase_file_patch(before, after, change), FILE_TOKENS, LEFT_OUT)
        parts.append(part)
        remaining -= len(part)
        if remaining < 0:
            break
    return clip_to_tokens("\n\n".join(parts), most, LEFT_OUT)


def _phase_diff_change_word(change: Change) -> str:
    if change.old is None:
        return "added"
    return "removed" if change.new is None else "changed"


def _phase_file_patch(before: Files, after: Files, change: Change) -> str:
    path = replace_surrogates(change.path)
    sides = [
        _phase_diff_side_content(files, entry)
        for files, entry in ((before, change.old), (after, change.new))
    ]
    if None in sides or any(b"\0" in side for side in sides if side):
        sizes = " → ".join(f"{entry.size:,}" for entry in (change.old, change.new) if entry)
        return f"{path}: not shown line by line ({sizes} bytes)"
    patch = Patch.create_from(
        sides[0], sides[1], old_as_path=path, new_as_path=path, context_lines=3
    )
    return patch.data.decode(errors="replace").rstrip()


def _phase_diff_side_content(files: Files, entry: FileEntry | None) -> bytes | None:
    if entry is None or entry.kind == "folder":
        return b""
    return None if entry.size > MAX_BYTES else files.read_entry(entry)
