"""The newest checkpoint that the remote lacks, in a file of the job's repository.

All processes of a workspaces root share it. So none that tries again later moves the remote back to
an older checkpoint, and a process that starts pushes what an earlier one could not: the job may
have ended meanwhile, or wait for a person, and has no step that would push it.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from pydantic import Field

from activities.checkpoints import Root
from activities.checkpoints.workspaces_root import list_job_repositories
from protocol.data_model import Data

FILE = "unpushed.json"


class UnpushedCheckpoint(Data):
    """What a push needs."""

    job: str
    url: str
    commit: str
    run: str
    """Id of the workflow run that made it."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags that the remote lacks, with their commits."""


def record_unpushed(repository: Path, checkpoint: UnpushedCheckpoint) -> UnpushedCheckpoint | None:
    """Write the file, with the tags of the checkpoint that it had; return what it has now.

    None if it cannot be written, as on a full disk.
    """
    if before := read_unpushed(repository):
        tags = before.tags | checkpoint.tags
        checkpoint = checkpoint.model_copy(update={"tags": tags})
    draft = repository / f"{FILE}.{secrets.token_hex(6)}"
    try:
        draft.write_text(checkpoint.model_dump_json())
        draft.replace(repository / FILE)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        return None
    return checkpoint


def read_unpushed(repository: Path) -> UnpushedCheckpoint | None:
    """Return the checkpoint; None if the remote has all, or the file is damaged."""
    try:
        return UnpushedCheckpoint.model_validate_json((repository / FILE).read_bytes())
    except (OSError, ValueError):
        return None


def remove_unpushed(repository: Path, pushed: UnpushedCheckpoint | None) -> None:
    """Remove the file, unless another process has recorded a later checkpoint meanwhile."""
    if read_unpushed(repository) == pushed:
        with suppress(OSError):
            (repository / FILE).unlink(missing_ok=True)


def list_unpushed(root: Root) -> list[UnpushedCheckpoint]:
    """Return what the remotes of a root's jobs lack."""
    unpushed = map(read_unpushed, list_job_repositories(root))
    return [each for each in unpushed if each is not None]
