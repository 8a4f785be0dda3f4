"""Where a job goes on from whose newest checkpoint is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from activities.job.recovery import Recovery
from protocol.requests import RecoverRequest
from tests.activities.standing import Standing, environment

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
