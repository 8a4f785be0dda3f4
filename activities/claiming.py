"""Whose a repository is: the mark that a job, or a project, leaves in its own."""

from __future__ import annotations

from pathlib import Path

from temporalio import activity

from activities.checkpoints import Root
from activities.forgetting.records import forgotten
from activities.opening import attempt_key, job_id
from config.schema import Problem
from protocol.state import Data

MARK = "job.json"


class Mark(Data):
    """What is known of a repository without opening it."""

    chain: str
    """First run id of its workflow."""
    job: str
    namespace: str
    project: str = ""
    """The project that the job works for."""
    keep_days: float | None = None


def claim(
    root: Root, repository: Path, chain: str, *, project: str = "", keep_days: float | None = None
) -> None:
    """A repository belongs to one workflow; another of the same id would write into its history.

    Raises:
        Problem: it has an owner, and that is another one; or that one was forgotten.
    """
    check_free(root)
    made = Mark(
        chain=chain,
        job=job_id(),
        namespace=activity.info().namespace,
        project=project,
        keep_days=keep_days,
    )
    # A draft and a link, so that a mark is there whole or not at all, and only one is made.
    draft = repository / f"{MARK}.{attempt_key()}"
    draft.write_text(made.model_dump_json())
    try:
        (repository / MARK).hardlink_to(draft)
    except FileExistsError:
        owner = mark_of(repository)
        if owner is None or owner.chain != chain:
            raise Problem(
                f"a job with the id {job_id()} has already run on this workspaces root; "
                "start this one under another id"
            ) from None
    finally:
        draft.unlink()


def check_free(root: Root) -> None:
    """Refuse the id of a forgotten job: what is left of that one in the stores carries it.

    Raises:
        Problem: it is such an id.
    """
    if record := forgotten(root, job_id()):
        raise Problem(f"{record.told}; start this one under another id")


def mark_of(repository: Path) -> Mark | None:
    """The mark in a repository; None where there is none that can be read."""
    try:
        return Mark.model_validate_json((repository / MARK).read_bytes())
    except (OSError, ValueError):
        return None
