"""What every request costs before the conversation: tools and system prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from activities.model.prompt import fixed_prompt_tokens, job_prompt_body
from activities.phases.orientation import orientation_messages
from activities.text.tokens import count_tokens
from activities.toolkit.tool_offer import unoffered_tools
from protocol.phase import PhaseKind
from tests.activities.standing import AT, Standing

MOST_TOKENS = 2_500


def begun(path: Path, kind: PhaseKind, *, document: bool = False, traces: bool = False) -> Standing:
    """A job of `generalist` at the beginning of a phase."""
    job = Standing.begin(path, kind=kind)
    if document:
        job.write("documents/tea.md", "# Tea")
    snapshot = job.open()
    snapshot.state.unused_tools = unoffered_tools(snapshot.files, has_traces=traces)
    snapshot.begin_conversation(*orientation_messages(snapshot, ""))
    job.commit = snapshot.save("begun", AT)
    return job


@pytest.mark.parametrize("kind", ["strategic", "tactical"])
def test_it_is_small(tmp_path: Path, kind: PhaseKind) -> None:
    snapshot = begun(tmp_path, kind).open()
    system = snapshot.conversation.message(0)["content"]
    assert fixed_prompt_tokens(snapshot) + count_tokens(system) <= MOST_TOKENS


def test_no_tool_is_offered_that_the_job_cannot_use(tmp_path: Path) -> None:
    def offered(job: Standing) -> set[str]:
        snapshot = job.open()
        body = json.loads(job_prompt_body(snapshot, snapshot.config.model, None))
        return {tool["function"]["name"] for tool in body["tools"]}

    bare = offered(begun(tmp_path / "bare", "strategic"))
    assert not bare & {"extract_document_text", "chunk_document", "query_traces", "get_trace"}
    assert "extract_document_text" in offered(begun(tmp_path / "doc", "strategic", document=True))
    assert "get_trace" in offered(begun(tmp_path / "traces", "strategic", traces=True))


def test_a_question_that_is_used_up_is_not_offered(tmp_path: Path) -> None:
    files = Standing.begin(tmp_path).open().files
    unused = unoffered_tools(files, has_traces=True, may_ask=False)
    assert "request_clarification" in unused
    assert "request_clarification" not in unoffered_tools(files, has_traces=True)


def test_schemas_say_nothing_that_tells_a_model_nothing(tmp_path: Path) -> None:
    snapshot = begun(tmp_path, "strategic").open()
    body = json.loads(job_prompt_body(snapshot, snapshot.config.model, None))
    text = json.dumps(body["tools"])
    for waste in ('"title"', '"null"', "$ref", "$defs", "maxLength"):
        assert waste not in text
