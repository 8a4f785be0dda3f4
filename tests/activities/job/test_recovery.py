"""Where a job goes on from: its newest checkpoint that is left, or what a person put there."""

from __future__ import annotations

from pathlib import Path

import pytest

from activities.checkpoints import open_checkpoints
from activities.checkpoints.journal import FULL_BYTES
from activities.job.recovery import Recovery
from protocol.requests import At, RecoverRequest
from tests.activities.standing import JOB, Standing, environment

LOST = "0" * 40
READ = ("read_file", '{"path": "instructions.md"}')


@pytest.mark.parametrize("made", [0, 1, 2])
def test_calls_of_the_newest_reply_that_were_not_made_are_still_to_be_made(
    tmp_path: Path, made: int
) -> None:
    job = Standing.begin(tmp_path)
    job.reply(READ, ("list_files", "{}"))
    for number in range(made):
        name = ("read_file", "list_files")[number]
        job.commit = job.run(name, job.request(call=number)).commit
    request = RecoverRequest(root=job.root.id, candidates=[LOST, job.commit])
    found = environment(local=False).run(Recovery(job.root).find_checkpoint, request)
    assert (found.commit, found.state.step) == (job.commit, 1)
    whole = made == 2
    assert [call.tool for call in found.calls] == ([] if whole else ["read_file", "list_files"])
    assert found.next_call == (0 if whole else made)
    assert whole or found.calls[0].path == "instructions.md"


def test_what_a_person_put_there_is_packed_before_the_job_goes_on(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    take = Recovery(job.root).take_folder
    request = At(root=job.root.id, commit=job.commit, at=0, step=1)
    folder = job.root.workspace(JOB)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "small.md").write_text("small")
    request.commit = environment(local=False).run(take, request).commit
    journal = open_checkpoints(job.root, JOB).path / "journal"
    assert list(journal.iterdir())
    (folder / "large.md").write_bytes(b"x" * FULL_BYTES)
    taken = environment(local=False).run(take, request)
    assert list(journal.iterdir()) == []
    job.commit = taken.commit
    assert job.open().files.read("large.md") == b"x" * FULL_BYTES
