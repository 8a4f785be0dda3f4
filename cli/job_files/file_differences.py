"""Differences between two checkpoints of a job."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from activities.checkpoints import Change, Files, FilesError, PathRefused, diff_files, diff_lines
from activities.checkpoints.volatile_paths import volatile_matcher
from activities.source_repository.branch_files import BUNDLE, PATCH
from activities.toolkit.path_ownership import is_system_path
from cli.output import UserError

MAX_LINES = 400


@dataclass(frozen=True)
class FileDifference:
    """One path that differs."""

    change: Change
    aside: bool
    """Whether people did not ask for its lines: it is listed last and by name only."""

    @property
    def word(self) -> str:
        if self.change.old is None:
            return "added"
        return "removed" if self.change.new is None else "changed"

    @property
    def old_size(self) -> int | None:
        return self.change.old.size if self.change.old else None

    @property
    def new_size(self) -> int | None:
        return self.change.new.size if self.change.new else None

    def as_line(self) -> str:
        """Return the change with sizes in bytes before and after, and the path."""
        sizes = [f"{size:,}" for size in (self.old_size, self.new_size) if size is not None]
        entry = self.change.new or self.change.old
        end = "/" if entry and entry.kind == "folder" else ""
        return f"{self.word:<7}  {' → '.join(sizes):>19}  {self.change.path}{end}"

    def as_data(self, text: str | None) -> dict[str, Any]:
        return {
            "path": self.change.path,
            "change": self.word,
            "old_bytes": self.old_size,
            "new_bytes": self.new_size,
            "system": is_system_path(self.change.path),
            "diff": text,
        }


def list_file_differences(
    old: Files, new: Files, path: str, caches: Sequence[str] = ()
) -> list[FileDifference]:
    """Return the differing paths at or below `path`, last those of the system and of caches.

    Args:
        caches: Patterns of paths that commands leave behind (`shell.volatile`).

    Raises:
        UserError: The path is in neither.
    """
    try:
        if path and old.entry(path) is None and new.entry(path) is None:
            raise UserError(
                f"there is no {path!r} in either; `starter.py files` lists what there is"
            )
    except (FilesError, PathRefused) as error:
        raise UserError(str(error)) from None
    folder = path.strip("/")
    is_cache = volatile_matcher(caches)

    def is_aside(path: str) -> bool:
        # The branch as a patch repeats the differences of the repository's files.
        return is_system_path(path) or is_cache(path) or path in (PATCH, BUNDLE)

    is_meant = is_aside(folder) or is_cache(f"{folder}/any")
    changes = [
        FileDifference(change, aside=is_aside(change.path) and not is_meant)
        for change in diff_files(old, new)
        if not folder or f"{change.path}/".startswith(f"{folder}/")
    ]
    return sorted(changes, key=lambda difference: difference.aside)


def render_file_difference(
    old: Files, new: Files, difference: FileDifference, names: tuple[str, str], *, all_lines: bool
) -> str:
    """Return the differing lines, or a sentence on why there are none to show.

    Args:
        names: Names of the two sides.
        all_lines: Show all lines, not only the first `MAX_LINES`.
    """
    path = difference.change.path
    lines = diff_lines(old, new, difference.change, names)
    if lines is None:
        return "binary, or too large to compare by line\n"
    if all_lines:
        return "".join(lines)
    shown = list(islice(lines, MAX_LINES))
    if rest := sum(1 for _ in lines):
        shown.append(f"… {rest:,} more lines; name {path} to see them\n")
    return "".join(shown)
