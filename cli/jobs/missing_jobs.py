"""Whether a job was forgotten, according to this environment's workspaces root."""

from engine.root_location import workspaces_root


def forgotten_job_notice(job_id: str) -> str | None:
    """Return a line on when the job was forgotten; None if it was not, or the root is not here."""
    # Imported on use: it loads libgit2, and only closed or missing jobs need it.
    from activities.checkpoints import Root, RootError, forgotten_records  # noqa: PLC0415

    try:
        record = forgotten_records.find_forgotten_record(
            Root.open(workspaces_root(), create=False), job_id
        )
    except RootError:
        return None
    return record.message if record else None


def expired_job_notice(job_id: str) -> str | None:
    """Return a line on a job that the root has but the server does not; None if there is none."""
    from activities.checkpoints import Root, RootError  # noqa: PLC0415 - as above
    from activities.projects.project_repository import project_repository_path  # noqa: PLC0415

    try:
        root = Root.open(workspaces_root(), create=False)
        if root.repository(job_id).is_dir():
            what, show = "job", "`files`, `log`, `diff` and `report` show"
        elif (repository := project_repository_path(root, job_id)).is_dir():
            what, show = "project", f"`git clone {repository}` has"
        else:
            return None
    except (RootError, OSError, ValueError):
        return None
    return f"Temporal has no {what} {job_id!r}, whose retention may be over; {show} what it left"
