"""The end of a job: its list, its last page and its result."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from activities.documents.pages import Quality
from activities.steps.close_job import NOT_IN_FILE, close_job
from protocol.endings import CloseReply, CloseRequest, Outcome
from protocol.scope_ledger import scope_from_texts
from protocol.usage import Usage
from tests.activities.standing import AT, Standing, environment

CLAIM: dict[str, Any] = {
    "summary": "Tea was made.",
    "deliverables": ["output/tea.md"],
    "confidence": 0.4,
    "notes": "It is green.",
    "unresolved": ["S2: the shop was closed"],
}


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    """A job with two of its three todos done and an open item."""
    job = Standing.begin(tmp_path)
    job.write("output/tea.md", "tea")
    snapshot = job.open()
    snapshot.state.scope = scope_from_texts(["tea", "water"])
    snapshot.state.scope[0].status = "completed"
    job.commit = snapshot.save("scope", AT)
    job.call("todo_complete")
    job.reply(("job_complete", json.dumps(CLAIM)))
    return job


async def close(job: Standing, status: Outcome, **details: Any) -> CloseReply:
    base = {"root": job.root.id, "commit": job.commit, "at": AT, "step": job.step}
    request = CloseRequest.model_validate({**base, "status": status, **details})
    closed: CloseReply = await environment(local=False).run(close_job(job.root), request)
    job.commit = closed.commit
    return closed


async def test_a_completion_closes_what_is_left_of_the_list(job: Standing) -> None:
    used = Usage(prompt_tokens=9, cached_tokens=7)
    closed = await close(job, "completed", call=0, phases=2, rewinds=1, usage=used)
    assert closed.result.usage == used
    snapshot = job.open()
    # Nobody did the second; the third is the call itself.
    assert [todo.done for todo in snapshot.state.phase.todos] == [True, False, True]
    assert closed.completed == [3]
    page = yaml.safe_load(snapshot.read_text("archive/phase_002.yaml"))
    assert [todo["status"] for todo in page["todos"]] == ["completed", "passed over", "completed"]
    completion = json.loads(snapshot.read_text("output/completion.json"))
    assert completion == closed.result.model_dump(exclude={**NOT_IN_FILE, "result": True})
    assert "cached_tokens" not in completion["usage"]
    assert {name: completion[name] for name in CLAIM} == CLAIM
    assert (completion["status"], completion["phases"], completion["rewinds"]) == (
        "completed",
        2,
        1,
    )


async def test_the_result_says_which_documents_were_read_badly(job: Standing) -> None:
    doubts = Quality(["Words run together: page 2."], [2], is_unreliable=True)
    job.write("documents/a.pdf", "%PDF-")
    job.write("documents/a.pdf.reading.json", doubts.as_json())
    job.write("documents/b.pdf", "%PDF-")
    job.write("documents/named-so.reading.json", "[]")
    closed = await close(job, "completed", call=0)
    assert closed.result.notes == "It is green.\ndocuments/a.pdf: Words run together: page 2."


@pytest.mark.parametrize("character", ["x", "\N{TEACUP WITHOUT HANDLE}", "\x01"])
async def test_a_result_in_any_script_fits_into_a_payload(job: Standing, character: str) -> None:
    snapshot = job.open()
    snapshot.state.scope = scope_from_texts([character * 500] * 200)
    reason = f"There is none: {character * 490}"
    snapshot.state.drop_items([item.id for item in snapshot.state.scope], reason)
    job.commit = snapshot.save("scope", AT)
    claim = {**CLAIM, "summary": character * 20_000, "notes": character * 20_000}
    claim["unresolved"] = [character * 2000] * 200
    while why := job.completion(**claim).arguments_error:
        assert "unresolved: " in why
        claim["unresolved"] = claim["unresolved"][::2]
    closed = await close(job, "completed", call=0)
    assert len(closed.model_dump_json().encode()) < 2_000_000


async def test_a_cancelled_job_leaves_open_what_is_and_names_it(job: Standing) -> None:
    closed = await close(job, "cancelled", reason="no longer needed")
    snapshot = job.open()
    assert [todo.done for todo in snapshot.state.phase.todos] == [True, False, False]
    assert closed.result.summary == "no longer needed"
    assert closed.result.unresolved == ["S2 (open): water"]


async def test_the_result_is_written_whatever_is_in_its_way(job: Standing) -> None:
    job.put(lambda files: files.make_folder("output/completion.json"))
    await close(job, "cancelled", reason="no longer needed")
    assert json.loads(job.text("output/completion.json"))["status"] == "cancelled"
