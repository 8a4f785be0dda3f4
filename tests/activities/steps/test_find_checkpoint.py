"""Where a job goes on from: its newest checkpoint that is left."""

import os
import shutil
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.checkpoints import open_checkpoints
from activities.checkpoints.forgotten_records import ForgottenJob, write_forgotten_record
from activities.steps.find_checkpoint import find_checkpoint
from protocol.requests import RecoverRequest
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
    reply = environment(local=False).run(find_checkpoint(job.root), request)
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
    recovered = find_checkpoint(job.root)
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
        environment(local=False).run(find_checkpoint(job.root), request)
    assert call_log.read_text().count(" index-pack ") == 1


def test_a_job_that_was_forgotten_and_reset_says_so(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    write_forgotten_record(job.root, ForgottenJob(job=JOB, timestamp=0, done=True))
    shutil.rmtree(job.root.repository(JOB))
    request = RecoverRequest(root=job.root.id, candidates=[job.commit])
    with pytest.raises(
        ApplicationError, match=r"^Storage: The job job was forgotten on 1970-01-01"
    ):
        environment(local=False).run(find_checkpoint(job.root), request)
