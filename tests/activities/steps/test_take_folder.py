"""What a person finds in a job's folder, and what is taken from it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from activities.checkpoints import open_checkpoints
from activities.checkpoints.journal import FULL_BYTES
from activities.steps.show_folder import show_folder
from activities.steps.take_folder import take_folder
from protocol.requests import FolderReply, ImportReply, TakeFolderRequest
from tests.activities.standing import JOB, Standing, environment


def test_what_a_person_put_there_is_packed_before_the_job_goes_on(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    take = take_folder(job.root)
    request = TakeFolderRequest(root=job.root.id, commit=job.commit, at=0, step=1)
    folder = job.root.workspace(JOB)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "small.md").write_text("small")
    request.commit = environment(local=False).run(take, request).commit
    journal = open_checkpoints(job.root, JOB).path / "journal"
    assert list(journal.iterdir())
    (folder / "large.md").write_bytes(b"x" * FULL_BYTES)
    imported = environment(local=False).run(take, request)
    assert list(journal.iterdir()) == []
    job.commit = imported.commit
    assert job.open().files.read("large.md") == b"x" * FULL_BYTES


def take(job: Standing) -> ImportReply:
    request = TakeFolderRequest(root=job.root.id, commit=job.commit, at=0, step=1)
    reply: ImportReply = environment(local=False).run(take_folder(job.root), request)
    job.commit = reply.commit
    return reply


def shown(job: Standing) -> Path:
    show(job)
    return job.root.workspace(JOB)


def show(job: Standing) -> list[str]:
    request = TakeFolderRequest(root=job.root.id, commit=job.commit, at=0, step=1)
    done: FolderReply = environment(local=False).run(show_folder(job.root), request)
    return done.moved_aside


def test_what_a_person_edited_before_they_paused_is_named(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    job.write("notes.md", "ours")
    (shown(job) / "notes.md").write_text("mine")
    assert show(job) == [f"lost+found/{JOB}/0001/notes.md"]


@pytest.mark.parametrize("path", ["plan.md", "workspace.md", "todos.yaml", "experiences.md"])
def test_a_link_out_of_the_workspace_in_place_of_a_file_the_system_reads_is_left_out(
    tmp_path: Path, path: str
) -> None:
    job = Standing.begin(tmp_path)
    job.write(path, "before")
    folder = shown(job)
    (folder / path).unlink()
    (folder / path).symlink_to("/etc/hostname")
    (folder / "notes.md").write_text("also")
    assert [note.split(" is a")[0] for note in take(job).notes] == [path]
    assert (job.text(path), job.text("notes.md")) == ("before", "also")


def test_a_link_to_a_file_of_the_workspace_is_read_as_that_file(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    folder = shown(job)
    (folder / "mine.md").write_text("a plan")
    (folder / "plan.md").symlink_to("mine.md")
    assert take(job).notes == []
    assert job.open().read_text("plan.md") == "a plan"


@pytest.mark.parametrize("target", ["/etc/hostname", "nothing.md", "plan.md", "output"])
def test_a_link_that_a_command_left_is_no_file(tmp_path: Path, target: str) -> None:
    job = Standing.begin(tmp_path)
    job.put(lambda files: files.link("plan.md", target))
    shown(job)
    assert job.open().read_bytes("plan.md") is None
    assert take(job).notes == []


@pytest.mark.parametrize(
    "path", ["output/completion.json", "archive/phase_001.md", "workspace_summary.md"]
)
@pytest.mark.parametrize("before", [None, "before"])
def test_a_folder_in_place_of_a_file_the_system_writes_is_left_out(
    tmp_path: Path, path: str, before: str | None
) -> None:
    job = Standing.begin(tmp_path)
    if before:
        job.write(path, before)
    folder, files = shown(job), job.open().files
    (folder / path).unlink(missing_ok=True)
    (folder / path).mkdir()
    (folder / path / "mine.md").write_text("mine")
    assert f"{path}/mine.md is kept by the system; the edit was left out" in take(job).notes
    assert job.open().files == files
    assert shown(job)
    assert [rescued.read_text() for rescued in job.root.lost_found(JOB).rglob("mine.md")] == [
        "mine"
    ]


@pytest.mark.parametrize("put", [Path.touch, lambda path: path.symlink_to("/tmp")])
def test_no_file_comes_in_place_of_a_folder_the_system_writes_to(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    job = Standing.begin(tmp_path)
    job.write("output/tea.md", "tea")
    folder = shown(job)
    shutil.rmtree(folder / "output")
    put(folder / "output")
    assert [note.split(".")[0] for note in take(job).notes] == [
        "output is a folder that the system writes to"
    ]
    assert job.text("output/tea.md") == "tea"
