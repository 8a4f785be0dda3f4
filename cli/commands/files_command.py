"""The command `files`: lists or prints the files of a job or a project."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import MOMENT, Job, Json
from cli.output import OK, UserError, print_json, print_note, print_result
from protocol.short_text import count_noun

if TYPE_CHECKING:
    from activities.checkpoints import FileEntry
    from cli.job_files.checkpoint_reader import CheckpointPlaces


def files(
    job: Job,
    path: Annotated[str, typer.Argument(help="A file to print or a folder to list.")] = "",
    at: Annotated[str, typer.Option(help=MOMENT, metavar="PHASE|now")] = "now",
    state: Annotated[
        bool, typer.Option("--state", help="For a project: its own files instead of the product.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="List the system's own files and caches too.")
    ] = False,
    json: Json = False,
) -> int:
    """List or print a job's files, now or at the start of any phase, including undone ones.

    Results in output/ come first. For a project: the files of its product as accepted so far.
    """
    from cli.job_files import checkpoint_reader  # noqa: PLC0415 - takes a second

    places = checkpoint_reader.fetch_checkpoint_places(job)
    if places.project is not None:
        return _print_project_files(job, places, path, at, state=state, json=json)
    if state:
        raise UserError(f"{job} is a job; --state is for projects")
    [commit], store = checkpoint_reader.checkpoint_commits_at(job, places, at)
    content = checkpoint_reader.read_checkpoint_path(
        checkpoint_reader.files_at_checkpoint(store, commit), path
    )
    if isinstance(content, bytes):
        _print_file_content(content, path, commit, json=json)
    elif json:
        rows = [{"path": entry.path, "kind": entry.kind, "bytes": entry.size} for entry in content]
        print_json({"commit": commit, "files": rows})
    else:
        shown = content
        if not (every or path):
            caches = checkpoint_reader.volatile_paths_at_checkpoint(store, commit)
            shown = _results_and_work(content, caches)
        _print_file_list(shown, left_out=len(content) - len(shown))
    return OK


def _results_and_work(entries: list[FileEntry], caches: list[str]) -> list[FileEntry]:
    """Return the entries without files of the system and what commands leave behind."""
    from activities.checkpoints.volatile_paths import volatile_matcher  # noqa: PLC0415
    from activities.toolkit.path_ownership import is_system_path  # noqa: PLC0415 - takes a second

    is_cache = volatile_matcher(caches)
    return [
        entry
        for entry in entries
        if not is_system_path(entry.path)
        and (entry.path.startswith("output/") or not is_cache(entry.path))
    ]


def _print_file_list(listed: list[FileEntry], *, left_out: int) -> None:
    """Print the entries, results first."""
    for entry in sorted(listed, key=lambda entry: not entry.path.startswith("output/")):
        print_result(f"{entry.size:>10,}  {entry.path}{'/' if entry.kind == 'folder' else ''}")
    if left_out:
        print_note(f"{count_noun(left_out, 'file')} of the system and of caches: --all")


def _print_file_content(content: bytes, path: str, commit: str, *, json: bool) -> None:
    """Print a file; unmodified if the output is redirected."""
    from cli.job_files import checkpoint_reader  # noqa: PLC0415 - takes a second

    if json:
        print_json(
            {"path": path, "commit": commit, **checkpoint_reader.checkpoint_file_json(content)}
        )
    elif sys.stdout.isatty() and b"\0" in content:
        print_note(f"{path} is binary, {len(content):,} bytes; send it into a file to have it")
    elif sys.stdout.isatty():
        print_result(content.decode("utf-8", "replace").rstrip("\n"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)


def _print_project_files(
    project: str, places: CheckpointPlaces, path: str, moment: str, *, state: bool, json: bool
) -> int:
    from cli.projects import project_files  # noqa: PLC0415 - loads the activities

    if moment != "now":
        raise UserError(f"{project} is a project, which has no phases: leave --at out")
    repository = project_files.open_project_files(project, places)
    commit = project_files.project_files_tip(repository, state=state)
    content = project_files.read_project_path(repository, commit, path)
    if isinstance(content, bytes):
        _print_file_content(content, path, commit, json=json)
    elif json:
        rows = [{"path": name, "kind": "file", "bytes": size} for name, size in content]
        print_json({"commit": commit, "files": rows})
    else:
        for name, size in content:
            print_result(f"{size:>10,}  {name}")
    return OK
