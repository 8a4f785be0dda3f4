"""The checkpoints of a forgotten job in the remote: removed, or named."""

from activities.checkpoints import GitNotInstalled, RemoteUnavailable, Root
from activities.checkpoints.forgotten_records import (
    ForgottenJob,
    find_forgotten_record,
    write_forgotten_record,
)
from activities.checkpoints.remote import open_remote, remote_checkpoint_area
from activities.checkpoints.remote_interface import Remote
from activities.projects.project_remote import project_remote_area
from protocol.git_address import git_address_without_user
from protocol.short_text import first_few

MOST_NAMED = 10


def forget_remote_job(root: Root, record: ForgottenJob) -> tuple[bool, list[str]]:
    """Remove what the remote has of a job.

    Returns:
        Whether there was anything, and what stays, one line each.
    """
    if not record.remote:
        return False, []
    job, where = record.job, git_address_without_user(record.remote)
    try:
        remote = open_remote(record.remote)
        areas = (remote_checkpoint_area(job), project_remote_area(job))
        refs = [ref for area in areas for ref in remote.forget_area(area, record.timestamp)]
    except (GitNotInstalled, RemoteUnavailable) as error:
        write_forgotten_record(root, record.model_copy(update={"done": True}))
        return False, [
            f"the checkpoints of {job} in the remote {where} stay for now: {error}; forget {job} "
            "again when it can be reached and lets refs be deleted"
        ]
    if refs or find_forgotten_record(root, job):
        write_forgotten_record(root, record.model_copy(update={"done": True, "remote": ""}))
    return bool(refs), _what_stays(root, record, remote, refs) if refs else []


def _what_stays(root: Root, record: ForgottenJob, remote: Remote, refs: list[str]) -> list[str]:
    job, notes = record.job, []
    if not remote.capabilities.deletes_objects:
        where = git_address_without_user(record.remote)
        notes.append(
            f"the remote {where} names nothing of {job} any more; its next `git gc --prune=now` "
            "deletes the objects"
        )
    parts = [ref.split("/") for ref in refs]
    roots = {part[2] for part in parts if part[0] == "runs" and len(part) == 3} - {root.id}
    if roots:
        named = first_few(sorted(roots), MOST_NAMED)
        notes.append(
            f"other workspaces roots have copies of {job} until they are deleted there: {named}"
        )
    return notes
