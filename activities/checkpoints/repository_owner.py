"""The owner of a repository: a mark that a job or a project writes into its repository."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from activities.checkpoints.checkpoint_errors import path_in_errors
from protocol.data_model import Data

OWNER_FILE = "job.json"


class OwnerMark(Data):
    """What is known of a repository without opening it."""

    chain: str
    """First run id of the workflow."""
    job: str
    namespace: str = ""
    """Empty if the job came from another host."""
    project: str = ""
    """The project that the job works for."""
    keep_days: float | None = None
    remote: str = ""
    """Where its checkpoints are pushed."""

    def may_be_in(self, namespace: str) -> bool:
        return self.namespace in ("", namespace)


def record_owner(repository: Path, mark: OwnerMark) -> OwnerMark | None:
    """Write the mark unless there is one. Return the mark that counts, None if it is unreadable."""
    # Write a draft and link it: the mark is complete or absent, and only one process creates it.
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
    """Return a repository's mark, or None if it is missing or unreadable."""
    try:
        return OwnerMark.model_validate_json((repository / OWNER_FILE).read_bytes())
    except (OSError, ValueError):
        return None
