"""Objects that one repository reads from another on the same root, as git's own alternates."""

import os
from pathlib import Path

from activities.checkpoints.disk_access import replace_file

PLACE = Path("objects", "info", "alternates")


def lend_objects(lender: Path, borrower: Path) -> None:
    """Let a repository, when opened anew, read the objects of another; idempotent."""
    lines = _read_alternates(borrower)
    if (line := _alternate_line(lender, borrower)) in lines:
        return
    replace_file(borrower / PLACE, "".join(f"{each}\n" for each in [*lines, line]))


def borrows_objects(borrower: Path, lender: Path) -> bool:
    return _alternate_line(lender, borrower) in _read_alternates(borrower)


def has_alternates(repository: Path) -> bool:
    return bool(_read_alternates(repository))


def _alternate_line(lender: Path, borrower: Path) -> str:
    # Relative: the root may be mounted elsewhere on another host.
    return os.path.relpath(lender / "objects", borrower / "objects")


def _read_alternates(borrower: Path) -> list[str]:
    try:
        return (borrower / PLACE).read_text().splitlines()
    except FileNotFoundError:
        return []
