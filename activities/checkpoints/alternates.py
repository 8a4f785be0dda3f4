"""Objects that one repository reads from another on the same root, as git's own alternates."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

PLACE = Path("objects", "info", "alternates")


def lend_objects(lender: Path, borrower: Path) -> None:
    """Let a repository read the objects of another; doing it twice changes nothing.

    Whoever has the borrower open already opens it anew to see them.
    """
    lines = _read_alternates(borrower)
    if (line := _alternate_line(lender, borrower)) in lines:
        return
    place = borrower / PLACE
    place.parent.mkdir(exist_ok=True)
    draft = place.with_name(f"alternates.{secrets.token_hex(6)}")
    draft.write_text("".join(f"{each}\n" for each in [*lines, line]))
    draft.replace(place)


def borrows_objects(borrower: Path, lender: Path) -> bool:
    """Whether a repository reads the objects of another."""
    return _alternate_line(lender, borrower) in _read_alternates(borrower)


def has_alternates(repository: Path) -> bool:
    """Whether a repository reads objects of another."""
    return bool(_read_alternates(repository))


def _alternate_line(lender: Path, borrower: Path) -> str:
    # Relative: the root may be mounted elsewhere on another host.
    return os.path.relpath(lender / "objects", borrower / "objects")


def _read_alternates(borrower: Path) -> list[str]:
    try:
        return (borrower / PLACE).read_text().splitlines()
    except FileNotFoundError:
        return []
