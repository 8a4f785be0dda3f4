"""What the conversation no longer shows is found again, in this phase and in earlier ones."""

import json
from pathlib import Path

import pytest

from activities.job.context_view import Compaction
from activities.job.conversation_calls import tool_call_id
from tests.activities.standing import AT, Standing


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    """Phase 2 of a job; in phase 1 a kettle was bought, in phase 2 a page was read and cleared."""
    standing = Standing.begin(tmp_path)
    call = {
        "id": tool_call_id(4, 0),
        "type": "function",
        "function": {"name": "read_file", "arguments": '{"path":"shop.md"}'},
    }
    snapshot = standing.open()
    snapshot.begin_conversation(
        {"role": "system", "content": "kettle"},
        {"role": "user", "content": "kettle"},
        {"role": "assistant", "content": "Decision: buy the copper kettle.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": tool_call_id(4, 0), "content": "Kettles cost 30."},
    )
    snapshot.shelve_conversation(1)
    snapshot.begin_conversation(
        {"role": "system", "content": "s"}, {"role": "user", "content": "u"}
    )
    standing.commit, standing.step = snapshot.save("phase 2", AT), 6
    standing.write("notes/a.md", "The spout drips.\n" + "filler " * 200)
    standing.call("read_file", path="notes/a.md")
    snapshot = standing.open()
    snapshot.compaction = Compaction(cleared=4, folded=0)
    standing.commit = snapshot.save("cleared", AT)
    return standing


def search(job: Standing, **arguments: object) -> str:
    job.reply(("search_history", json.dumps(arguments)))
    reply = job.run("search_history", job.request(), local=False)
    job.commit = reply.commit
    content: str = job.open().conversation.messages()[-1]["content"]
    return content


def test_a_cleared_result_is_found(job: Standing) -> None:
    answer = search(job, query="spout")
    assert "phase 2 · step 7 · result of read_file" in answer
    assert "The spout drips." in answer


def test_an_earlier_phase_is_found_with_the_best_match_first(job: Standing) -> None:
    answer = search(job, query="copper kettle decision")
    first = answer.split("\n\n")[1]
    assert first.startswith("phase 1 · step 4 · your reply")
    assert "buy the copper kettle" in first
    # The opening of a phase is made from files and is not searched.
    assert "2 messages found" in answer


def test_a_phase_can_be_named(job: Standing) -> None:
    assert "in phase 2 holds" in search(job, query="copper", phase=2)
    assert "copper" in search(job, query="copper", phase=1)


@pytest.mark.parametrize("query", ["nowhere", "%%% ???", "[(", "x" * 300])
def test_what_is_not_there_is_said(job: Standing, query: str) -> None:
    answer = search(job, query=query)
    assert "holds any of these words" in answer or "has no words" in answer


def test_what_is_found_is_shown_although_letters_before_it_are_two_when_folded(
    job: Standing,
) -> None:
    job.write("notes/b.md", "Straße " * 900 + "the valve is stuck " + "filler " * 200)
    job.call("read_file", path="notes/b.md")
    assert "the valve is stuck" in search(job, query="valve")
