"""A call as a person is shown it: every argument, bounded, or why it cannot be run."""

import json
from pathlib import Path

from activities.job.context_view import shorten_exchanges
from activities.redaction.secrets import MAX_CHARACTERS, show_arguments
from activities.steps.show_call import show_call
from protocol.requests import ShowCallReply, ShowCallRequest
from tests.activities.standing import AT, Standing, environment


def shown(job: Standing, name: str, raw: str) -> ShowCallReply:
    job.reply(("list_files", "{}"), (name, raw))
    request = ShowCallRequest(root=job.root.id, commit=job.commit, at=AT, step=job.step, call=1)
    reply: ShowCallReply = environment(local=False).run(show_call(job.root), request)
    return reply


def test_arguments_are_shown_as_they_would_be_used(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    todos = [{"id": 1, "content": "Grüßen"}]
    raw = json.dumps({"phase": "One", "description": "a\nb", "todos": todos})
    reply = shown(job, "todo_write", raw)
    assert reply.error is None
    assert reply.arguments["description"] == "a\nb"
    assert json.loads(reply.arguments["todos"]) == [{**todos[0], "items": [], "done_when": None}]
    # Defaults take effect as well.
    assert shown(job, "read_file", '{"path": "a.md"}').arguments["limit"] == "500"


def test_what_cannot_be_run_says_why(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    assert "valid JSON" in (shown(job, "move_file", "{").error or "")
    reply = shown(job, "move_file", '{"old": "a"}')
    assert "new: Field required" in (reply.error or "")
    assert reply.arguments == {}


def test_long_arguments_are_cut_and_say_so() -> None:
    cut = show_arguments({"path": "a.md", "content": "x" * 100_000})
    assert cut["path"] == "a.md"
    assert cut["content"].endswith("x [92,000 more characters are not shown]")
    assert sum(map(len, cut.values())) < MAX_CHARACTERS


def test_a_question_goes_into_history_without_credentials(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    key = "sk-proj-" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 2
    arguments = {"question": f"Is {key} the right key?", "default": f"Go on with {key}."}
    reply = shown(job, "request_clarification", json.dumps(arguments))
    assert reply.arguments == {
        "question": "Is sk-[redacted] the right key?",
        "default": "Go on with sk-[redacted].",
    }
    wrong = shown(job, "request_clarification", json.dumps({**arguments, key: 1}))
    assert wrong.error
    assert key not in wrong.model_dump_json()


def test_arguments_that_are_nested_too_deep_are_read_as_none(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    deep = "[" * 100_000
    assert "valid JSON" in (shown(job, "move_file", deep).error or "")
    snapshot = job.open()
    assert snapshot.text_argument(1, "old") == ""
    call = {"id": "s1c0", "type": "function", "function": {"name": "x", "arguments": deep}}
    [_, result] = shorten_exchanges(
        [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "s1c0", "content": "x" * 5000},
        ]
    )
    assert "search_history" in result["content"]
