"""Whose a repository is: the mark that a job, or a project, leaves in its own."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from activities.checkpoints.locks import path_in_errors
from protocol.state import Data

OWNER_FILE = "job.json"


class OwnerMark(Data):
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


def record_owner(repository: Path, mark: OwnerMark) -> OwnerMark | None:
    """Leave a mark in a repository that has none. Gives the one that counts; None: unreadable."""
    # A draft and a link, so that a mark is there whole or not at all, and only one is made.
    draft = repository / f"{OWNER_FILE}.{secrets.token_hex(6)}"
    try:
        with path_in_errors(draft):
            draft.write_text(mark.model_dump_json())
        with suppress(FileExistsError):
            (repository / OWNER_FILE).hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)
    return read_owner(repository)


def read_owner(repository: Path) -> OwnerMark | None:
    """The mark in a repository; None where there is none that can be read."""
    try:
        return OwnerMark.model_validate_json((repository / OWNER_FILE).read_bytes())
    except (OSError, ValueError):
        return None
