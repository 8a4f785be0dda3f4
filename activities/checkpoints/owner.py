"""Whose a repository is: the mark that a job, or a project, leaves in its own."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from activities.checkpoints.locks import named
from protocol.state import Data

MARK = "job.json"


class Mark(Data):
    """What is known of a repository without opening it."""

    chain: str
    """First run id of its workflow."""
    job: str
    namespace: str = ""
    """Empty where the job came from another host."""
    project: str = ""
    """The project that the job works for."""
    keep_days: float | None = None

    def may_be_in(self, namespace: str) -> bool:
        return self.namespace in ("", namespace)


def take_mark(repository: Path, mark: Mark) -> Mark | None:
    """Leave a mark in a repository that has none. Gives the one that counts; None: unreadable."""
    # A draft and a link, so that a mark is there whole or not at all, and only one is made.
    draft = repository / f"{MARK}.{secrets.token_hex(6)}"
    try:
        with named(draft):
            draft.write_text(mark.model_dump_json())
        with suppress(FileExistsError):
            (repository / MARK).hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)
    return mark_of(repository)


def mark_of(repository: Path) -> Mark | None:
    """The mark in a repository; None where there is none that can be read."""
    try:
        return Mark.model_validate_json((repository / MARK).read_bytes())
    except (OSError, ValueError):
        return None
