"""The command `diff`: how a job's files differ between two moments."""

import sys
from typing import Annotated

import typer

from cli.options import MOMENT, Job, Json
from cli.output import OK, UserError, print_json, print_note, print_result


def diff(
    job: Job,
    before: Annotated[str | None, typer.Argument(help=MOMENT, metavar="PHASE|now")] = None,
    after: Annotated[
        str | None,
        typer.Argument(help="The second moment; only with the first.", metavar="PHASE|now"),
    ] = None,
    path: Annotated[str, typer.Argument(help="Only this file, or the files in this folder.")] = "",
    stat: Annotated[bool, typer.Option("--stat", help="Names and sizes only.")] = False,
    name_only: Annotated[
        bool,
        typer.Option(
            "--name-only", help="Only names of files that the work on a repository changed."
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Show how a job's files differ between the starts of two phases, or between a phase and now.

    Without phases: what the work on a repository changed since it began, like `git diff`; for a
    project, up to its newest accepted work. The system's own files (archive/, tools/ and the
    like), caches and the branch as a file are listed last and by name only; PATH shows their lines
    too.
    """
    if before is None:
        return _print_repository_diff(job, stat=stat, name_only=name_only, json=json)
    if after is None:
        raise UserError(f"diff {job} {before}: name a second moment, PHASE or now")
    if name_only:
        raise UserError("--name-only is for the work on a repository: leave the phases out")
    return _print_phase_diff(job, before, after, path, stat=stat, json=json)


def _print_phase_diff(
    job: str, before: str, after: str, path: str, *, stat: bool, json: bool
) -> int:
    """Print how the files differ between two moments of a job."""
    from cli.job_files import checkpoint_reader, file_differences  # noqa: PLC0415 - loads the activities

    for moment in (before, after):
        checkpoint_reader.parse_checkpoint_moment(moment)
    if (places := checkpoint_reader.fetch_checkpoint_places(job)).project is not None:
        raise UserError(
            f"{job} is a project, whose files are a git repository: `starter.py diff {job}` shows "
            "what was made, and `starter.py log` its commits"
        )
    commits, store = checkpoint_reader.checkpoint_commits_at(job, places, before, after)
    old, new = (checkpoint_reader.files_at_checkpoint(store, commit) for commit in commits)
    caches = checkpoint_reader.volatile_paths_at_checkpoint(store, commits[-1])
    changes = file_differences.list_file_differences(old, new, path, caches)
    names = [text if text == "now" else f"phase {text}" for text in (before, after)]

    def render_change(difference: file_differences.FileDifference) -> str | None:
        if stat or difference.aside:
            return None
        return file_differences.render_file_difference(
            old, new, difference, (names[0], names[1]), all_lines=bool(path)
        )

    if json:
        print_json(
            {
                "commits": commits,
                "changes": [
                    difference.as_data(render_change(difference)) for difference in changes
                ],
            }
        )
        return OK
    for difference in changes:
        print_result(difference.as_line())
    for difference in changes:
        if lines := render_change(difference):
            print_result(
                f"\n{difference.change.path}: {lines}"
                if lines.startswith("binary")
                else f"\n{lines}"
            )
    if not changes:
        print_note("nothing differs")
    return OK


def _print_repository_diff(job: str, *, stat: bool, name_only: bool, json: bool) -> int:
    """Print what the work on a repository changed."""
    from cli.job_files import checkpoint_reader, repository_diff  # noqa: PLC0415 - loads the activities

    places = checkpoint_reader.fetch_checkpoint_places(job)
    if places.project is not None:
        changed = repository_diff.diff_project_repository(job, places)
    else:
        [commit], store = checkpoint_reader.checkpoint_commits_at(job, places, "now")
        changed = repository_diff.diff_job_repository(job, store, commit)
    form: repository_diff.Form = "names" if name_only else "stat" if stat else "patch"
    text = changed.render(form)
    if json:
        listed = {"base": changed.base, "tip": changed.tip, "paths": changed.paths}
        print_json({**listed, "diff": text.decode("utf-8", "replace")})
    elif text:
        sys.stdout.flush()
        sys.stdout.buffer.write(text)
        sys.stdout.flush()
    else:
        print_note("nothing differs")
    return OK
