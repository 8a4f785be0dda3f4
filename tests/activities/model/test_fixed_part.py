"""What every request costs before the conversation: tools and system prompt."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from activities.job.snapshot import Snapshot
from activities.model.prompt import count_prompt_tokens, fixed_prompt_tokens, job_prompt_body
from activities.model.reply_stream import StreamedReply
from activities.model.window import window_notice, window_remedy
from activities.phases.orientation import orientation_messages
from activities.steps.model_call import _token_ratio
from activities.text.tokens import count_tokens
from activities.toolkit.registry import REGISTRY
from activities.toolkit.tool_offer import offerable_tools, unoffered_tools
from config.agent_files import agent_names, load_agent
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


def fixed_tokens(path: Path, agent: str, kind: PhaseKind) -> int:
    job = Standing.begin(path / agent / kind, agent=agent, kind=kind)
    if job.open().config.needs_documents:
        job.write("documents/tea.md", "# Tea")
    snapshot = job.open()
    snapshot.state.unused_tools = unoffered_tools(snapshot.files, has_traces=False)
    system = orientation_messages(snapshot, "")[0]["content"]
    return fixed_prompt_tokens(snapshot) + count_tokens(system)


@pytest.mark.parametrize("agent", agent_names())
def test_the_documentation_says_what_it_is_for_each_agent(tmp_path: Path, agent: str) -> None:
    counted = [fixed_tokens(tmp_path, agent, kind) for kind in ("strategic", "tactical")]
    assert max(counted) <= MOST_TOKENS
    page = (Path(__file__).parents[3] / "docs" / "context.md").read_text()
    row = " | ".join(f"{round(tokens, -2):,}" for tokens in counted)
    assert f"| `{agent}` | {row} |" in page


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
    for waste in ('"title"', '"null"', "$ref", "$defs", "minLength"):
        assert waste not in text


def test_no_description_has_an_example_that_could_become_an_argument() -> None:
    example = re.compile(r"\*\.|\w/\w+\*?\.\w+|such as [`\"]?[\w/]*\d|\d{4}-\d\d-\d\d")
    for tool in REGISTRY.values():
        assert not example.search(json.dumps(tool.schema["function"]["parameters"])), tool.name


@pytest.mark.parametrize("agent", ["generalist", "small"])
def test_lists_and_short_texts_have_bounds_that_a_grammar_can_hold(agent: str) -> None:
    def bounds(part: Any) -> Iterator[int]:
        if isinstance(part, dict):
            if part.get("type") == "array":
                yield part["maxItems"]
            yield part.get("maxLength", 0)
            for inner in part.values():
                yield from bounds(inner)

    tools = [tool.schema for tool in offerable_tools(load_agent(agent))]
    found = [bound for tool in tools for bound in bounds(tool["function"]["parameters"])]
    assert 0 < max(found) <= 500


def only_deliverables(snapshot: Snapshot) -> tuple[set[str], object]:
    body = json.loads(job_prompt_body(snapshot, snapshot.config.model, None))
    tools = {tool["function"]["name"]: tool["function"] for tool in body["tools"]}
    listed = tools["job_complete"]["parameters"]["properties"]["deliverables"]
    return set(tools), listed["items"].get("enum")


def test_a_final_list_of_one_todo_offers_what_ends_it_with_the_files_that_were_made(
    tmp_path: Path,
) -> None:
    job = begun(tmp_path, "strategic")
    for path in ("output/tea.md", "notes/a.md", "plan.md"):
        job.call("write_file", path=path, content="tea")
    snapshot = job.open()
    assert "todo_complete" in only_deliverables(snapshot)[0]
    snapshot.state.phase.purpose = "final"
    assert only_deliverables(snapshot)[1] is None
    del snapshot.state.phase.todos[1:]
    tools, choices = only_deliverables(snapshot)
    assert "todo_complete" not in tools
    assert choices == ["output/tea.md"]


def test_a_narrowed_turn_offers_nothing_else(tmp_path: Path) -> None:
    snapshot = begun(tmp_path, "strategic").open()
    accepted = ["todo_complete", "todo_rewind"]
    body = json.loads(job_prompt_body(snapshot, snapshot.config.model, None, only=accepted))
    assert sorted(tool["function"]["name"] for tool in body["tools"]) == accepted
    before = json.loads(job_prompt_body(snapshot, snapshot.config.model, None))
    assert {**body, "tools": before["tools"]} == before


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
