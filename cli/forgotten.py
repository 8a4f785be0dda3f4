"""Whether a job was forgotten, as the workspaces root of this environment has it."""

from __future__ import annotations

from engine.connection import workspaces_root


def forgotten_notice(job_id: str) -> str | None:
    """A line that says so; None when it was not, or the root is not here."""
    # Late: it loads libgit2, and is asked only of jobs that are closed or not there.
    from activities.checkpoints import (  # noqa: PLC0415
        Root,
        RootError,
        forgotten,
    )

    try:
        record = forgotten.find_forgotten(Root.open(workspaces_root(), create=False), job_id)
    except RootError:
        return None
    return record.message if record else None


def outlived_notice(job_id: str) -> str | None:
    """A line that says that the root has a job which the server has not; None if it has not."""
    from activities.checkpoints import Root, RootError  # noqa: PLC0415 - as above
    from activities.projects.repository import repository_path  # noqa: PLC0415

    try:
        root = Root.open(workspaces_root(), create=False)
        if root.repository(job_id).is_dir():
            what, show = "job", "`files`, `log`, `diff` and `report` show"
        elif (repository := repository_path(root, job_id)).is_dir():
            what, show = "project", f"`git clone {repository}` has"
        else:
            return None
    except (RootError, OSError, ValueError):
        return None
    return f"Temporal has no {what} {job_id!r}, whose retention may be over; {show} what it left"
