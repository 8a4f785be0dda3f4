"""Where a job goes on from: its newest checkpoint that is left, or what a person put there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.checkpoints import open_checkpoints
from activities.checkpoints.forgotten_records import ForgottenJob, write_forgotten_record
from activities.checkpoints.journal import FULL_BYTES
from activities.steps.recovery import Recovery
from protocol.requests import FolderReply, ImportReply, RecoverRequest, TakeFolderRequest
from tests.activities.standing import JOB, Standing, environment

LOST = "0" * 40
READ = ("read_file", '{"path": "instructions.md"}')


@pytest.mark.parametrize("done_count", [0, 1, 2])
def test_calls_of_the_newest_reply_that_were_not_made_are_still_to_be_made(
    tmp_path: Path, done_count: int
) -> None:
    job = Standing.begin(tmp_path)
    job.reply(READ, ("list_files", "{}"))
    for number in range(done_count):
        name = ("read_file", "list_files")[number]
        job.commit = job.run(name, job.request(call=number)).commit
    request = RecoverRequest(root=job.root.id, candidates=[LOST, job.commit])
    reply = environment(local=False).run(Recovery(job.root).find_checkpoint, request)
    assert (reply.commit, reply.state.step) == (job.commit, 1)
    whole = done_count == 2
    assert [call.tool for call in reply.calls] == ([] if whole else ["read_file", "list_files"])
    assert reply.next_call == (0 if whole else done_count)
    assert whole or reply.calls[0].path == "instructions.md"


TODOS = ", ".join(['{"content": "Boil"}'] * 5)
HANDED = f'{{"phase": "Tea", "description": "", "todos": [{TODOS}]}}'


def test_of_a_reply_that_goes_on_it_is_known_what_failed_and_whether_it_handed_over(
    tmp_path: Path,
) -> None:
    job = Standing.begin(tmp_path)
    missing = ("read_file", '{"path": "tea.md"}')
    job.reply(READ, missing, missing, ("todo_write", HANDED), READ)
    recovered = Recovery(job.root).find_checkpoint
    outcomes = []
    for number, name in enumerate(["read_file", "read_file", "read_file", "todo_write"]):
        job.commit = job.run(name, job.request(call=number)).commit
        request = RecoverRequest(root=job.root.id, candidates=[job.commit])
        reply = environment(local=False).run(recovered, request)
        outcomes.append((reply.next_call, reply.failed_call, reply.handed_over))
    assert outcomes == [(1, None, False), (2, 1, False), (3, 1, False), (4, 1, True)]
    assert reply.failure.startswith("There is no file 'tea.md'")
    # The last call of such a reply may end the phase.
    job.commit = job.run("read_file", job.request(call=4)).commit
    request = RecoverRequest(root=job.root.id, candidates=[job.commit])
    reply = environment(local=False).run(recovered, request)
    assert (len(reply.calls), reply.next_call, reply.handed_over) == (5, 5, True)


def test_a_damaged_pack_without_an_index_is_looked_into_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Standing.begin(tmp_path)
    job.reply(READ, READ)
    checkpoints = open_checkpoints(job.root, JOB)
    checkpoints.pack()
    [pack] = (checkpoints.path / "objects/pack").glob("*.pack")
    pack.with_suffix(".idx").unlink()
    pack.chmod(0o644)
    with pack.open("r+b") as file:
        file.truncate(pack.stat().st_size - 30)
    checkpoints.store.reload()
    call_log, git = tmp_path / "asked", tmp_path / "bin/git"
    git.parent.mkdir()
    git.write_text(f'#!/bin/sh\necho "$@" >> {call_log}\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")
    request = RecoverRequest(root=job.root.id, candidates=[job.commit, LOST, LOST])
    with pytest.raises(ApplicationError, match="None of the job's checkpoints can be found"):
        environment(local=False).run(Recovery(job.root).find_checkpoint, request)
    assert call_log.read_text().count(" index-pack ") == 1


def test_a_job_that_was_forgotten_and_reset_says_so(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    write_forgotten_record(job.root, ForgottenJob(job=JOB, timestamp=0, done=True))
    shutil.rmtree(job.root.repository(JOB))
    request = RecoverRequest(root=job.root.id, candidates=[job.commit])
    with pytest.raises(
        ApplicationError, match=r"^Storage: The job job was forgotten on 1970-01-01"
    ):
        environment(local=False).run(Recovery(job.root).find_checkpoint, request)


def test_what_a_person_put_there_is_packed_before_the_job_goes_on(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    take = Recovery(job.root).take_folder
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
    reply: ImportReply = environment(local=False).run(Recovery(job.root).take_folder, request)
    job.commit = reply.commit
    return reply


def shown(job: Standing) -> Path:
    show(job)
    return job.root.workspace(JOB)


def show(job: Standing) -> list[str]:
    request = TakeFolderRequest(root=job.root.id, commit=job.commit, at=0, step=1)
    done: FolderReply = environment(local=False).run(Recovery(job.root).show_folder, request)
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
