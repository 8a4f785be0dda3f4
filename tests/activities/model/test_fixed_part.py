"""What every request costs before the conversation: tools and system prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from activities.model.prompt import count_prompt_tokens, fixed_prompt_tokens, job_prompt_body
from activities.model.reply_stream import StreamedReply
from activities.model.window import window_notice, window_remedy
from activities.phases.orientation import orientation_messages
from activities.steps.model_call import _token_ratio
from activities.text.tokens import count_tokens
from activities.toolkit.tool_offer import unoffered_tools
from protocol.phase import PhaseKind
from protocol.usage import Usage
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


def test_a_window_that_the_fixed_part_does_not_fit_is_told(tmp_path: Path) -> None:
    snapshot = begun(tmp_path, "strategic").open()
    assert window_notice(snapshot) == ""
    snapshot.config.context.tokens = 2_000
    notice = window_notice(snapshot)
    assert "tokens before any work (the tools 1," in notice
    assert "2,000 are allowed" in notice
    assert "agent `small`" in notice
    assert "leave out tools of the agent generalist" in window_remedy(snapshot)


def test_our_count_is_corrected_by_the_endpoints(tmp_path: Path) -> None:
    job = begun(tmp_path, "strategic")
    snapshot = job.open()
    before = count_prompt_tokens(snapshot)
    snapshot.state.token_ratio = 1.4
    job.commit = snapshot.save("corrected", AT)
    assert count_prompt_tokens(job.open()) == round(before * 1.4)
    reply = StreamedReply(text="", calls=[], finish="stop", usage=Usage(prompt_tokens=1_300))
    assert [
        _token_ratio(reply.model_copy(update=changes), estimate, 1.1)
        for changes, estimate in (
            ({}, 1_000), ({}, 2_000), ({}, 100), ({"missing_parts": ["usage"]}, 1_000),
            ({"is_fallback": True}, 1_000),
        )
    ] == [1.3, 1.0, 2.0, 1.1, 1.1]  # fmt: skip
