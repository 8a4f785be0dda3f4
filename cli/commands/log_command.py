"""The command `log`: a job's steps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cli.options import Job, Json
from cli.output import OK, print_json, print_note, print_result

if TYPE_CHECKING:
    from activities.checkpoints import LogEntry


def log(job: Job, json: Json = False) -> int:
    """List a job's steps that changed anything, oldest first.

    For a project: the commits of its product, one for each accepted piece of work.
    """
    from cli.job_files import checkpoint_reader  # noqa: PLC0415 - takes a second
    from cli.projects import project_files  # noqa: PLC0415 - takes a second

    places = checkpoint_reader.fetch_checkpoint_places(job)
    steps: list[LogEntry] | list[project_files.CommitLine]
    if places.project is not None:
        repository = project_files.open_project_files(job, places)
        steps = project_files.read_project_commits(
            repository, project_files.project_files_tip(repository, state=False)
        )
    else:
        [commit], store = checkpoint_reader.checkpoint_commits_at(job, places, "now")
        steps = checkpoint_reader.read_checkpoint_log(store, commit)
        if store.lacks_parent(steps[0].id):
            print_note("the steps before these are damaged or not in this store")
    if json:
        print_json(
            [
                {"id": step.id, "at": step.timestamp, "message": step.message.strip()}
                for step in steps
            ]
        )
        return OK
    for step in steps:
        when = datetime.fromtimestamp(step.timestamp, UTC).astimezone()
        first = step.message.strip().partition("\n")[0]
        print_result(f"{step.id[:8]}  {when:%Y-%m-%d %H:%M:%S}  {first}")
    return OK
