"""Every message is sent in the form of the API, and what a provider wants back to it alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from activities.checkpoints import Files, Root, open_checkpoints
from activities.job.context_view import Compaction, ContextView
from activities.job.conversation import Conversation, MessageEncoding
from activities.job.conversation_calls import WRITTEN, tool_result_message
from activities.model.message_forms import ChatMessageForm, MessageFormWeights, ResponsesMessageForm
from activities.model.reply_message import reply_message, reply_provider_data
from activities.model.reply_stream import StreamedReply
from activities.redaction.credentials import encode_without_credentials
from protocol.usage import Usage

ONE = "http://one/v1 m"
REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA" * 40}
CALL = {
    "id": "fc_1", "type": "function_call", "call_id": "call_x", "name": "list_files",
    "arguments": "{}", "status": "completed",
}  # fmt: skip
SAID = {
    "id": "msg_1", "type": "message", "role": "assistant", "phase": "commentary",
    "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
}  # fmt: skip
ITEMS = [REASONING, SAID, CALL]


def reply(**details: Any) -> StreamedReply:
    base: dict[str, Any] = {"text": "I look.", "calls": [("list_files", "{}")]}
    return StreamedReply(finish="tool_calls", usage=Usage(), maker=ONE, **{**base, **details})


@pytest.fixture
def conversation(tmp_path: Path) -> Conversation:
    root = Root.open(tmp_path / "root", create=True)
    empty = Conversation(Files.empty(open_checkpoints(root, "job", create=True).store))
    return empty.append(
        {"role": "system", "content": "You work."}, {"role": "user", "content": "Begin."}
    )


def add(history: Conversation, step: int, streamed: StreamedReply) -> Conversation:
    """Append a reply and the results of its calls."""
    history = history.append_reply(
        reply_message(step, streamed), reply_provider_data(step, streamed)
    )
    return history.append(
        *(tool_result_message(step, n, "a.md") for n in range(len(streamed.calls)))
    )


def sent(history: Conversation, form: MessageEncoding | None) -> list[dict[str, Any]]:
    wire_messages: list[dict[str, Any]] = json.loads(
        b"[%b]" % b",".join(history.wire_bytes(0, None, form))
    )
    return wire_messages


def test_items_go_back_as_they_came_with_the_provider_s_ids(conversation: Conversation) -> None:
    history = add(conversation, 1, reply(items=ITEMS))
    assert sent(history, ResponsesMessageForm(ONE, True)) == [
        {"type": "message", "role": "system", "content": "You work."},
        {"type": "message", "role": "user", "content": "Begin."},
        *ITEMS,
        {"type": "function_call_output", "call_id": "call_x", "output": "a.md"},
    ]


@pytest.mark.parametrize(
    "form", [ResponsesMessageForm("http://one/v1 other", True), ResponsesMessageForm(ONE, False)]
)
def test_another_model_gets_the_same_without_ids(
    conversation: Conversation, form: MessageEncoding
) -> None:
    history = add(conversation, 1, reply(items=ITEMS))
    assert sent(history, form)[2:] == [
        {"type": "message", "role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "s1c0", "name": "list_files", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "s1c0", "output": "a.md"},
    ]


def test_a_chat_model_gets_what_is_stored(conversation: Conversation) -> None:
    history = add(conversation, 1, reply(items=ITEMS))
    assert sent(history, ChatMessageForm(ONE, None)) == sent(history, None)
    assert "rs_1" not in str(sent(history, None))


DETAILS = [{"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "index": 0}]
FIELDS = {"reasoning_content": "Hm.", "reasoning_details": DETAILS}


@pytest.mark.parametrize(
    ("reasoning", "maker", "fields"),
    [
        (None, ONE, {"reasoning_details": DETAILS}),
        (True, ONE, FIELDS),
        (False, ONE, {}),
        (None, "another", {}),
        # An endpoint that requires it requires it of every reply.
        (True, "another", {"reasoning_content": ""}),
    ],
)
def test_reasoning_goes_back_where_it_is_wanted(
    conversation: Conversation, reasoning: bool | None, maker: str, fields: dict[str, Any]
) -> None:
    plain = add(conversation, 1, reply())
    history = add(conversation, 1, reply(fields=FIELDS))
    message = sent(history, ChatMessageForm(maker, reasoning))[2]
    assert message == {**sent(plain, None)[2], **fields}


def test_it_is_the_same_however_many_messages_lie_together(conversation: Conversation) -> None:
    history = conversation
    for step in range(1, 50):
        own = [{**REASONING, "id": f"rs_{step}"}, {**CALL, "call_id": f"call_{step}"}]
        # Every second reply is another model's.
        history = add(history, step, reply(items=own) if step % 2 else reply())
    form = ResponsesMessageForm(ONE, True)
    one_by_one = [
        item
        for number in range(len(history))
        for item in json.loads(b"[%b]" % b",".join(history.wire_bytes(number, number + 1, form)))
    ]
    assert sent(history, form) == one_by_one
    called = [item["call_id"] for item in one_by_one if item["type"] == "function_call"]
    answered = [item["call_id"] for item in one_by_one if item["type"] == "function_call_output"]
    assert called == answered == [f"call_{n}" if n % 2 else f"s{n}c0" for n in range(1, 50)]


def test_what_is_cleared_keeps_its_reasoning_and_what_is_folded_goes_with_it(
    conversation: Conversation,
) -> None:
    history = conversation
    for step in range(1, 9):
        items = [{**REASONING, "id": f"rs_{step}"}, {**CALL, "call_id": f"call_{step}"}]
        history = history.append_reply(
            reply_message(step, reply(items=items)),
            reply_provider_data(step, reply(items=items)),
        ).append(tool_result_message(step, 0, "x" * 500))
    view = ContextView(history, Compaction(cleared=10, folded=6, summary="So far."))
    form = ResponsesMessageForm(ONE, True)
    items = json.loads(b"[%b]" % b",".join(view.wire_bytes(form)))
    kinds = [item.get("id") or item["type"] for item in items if item["type"] != "function_call"]
    outputs = ["function_call_output"]
    reasoned = [part for n in range(3, 9) for part in (f"rs_{n}", *outputs)]
    assert kinds == ["message", "message", "message", *reasoned]
    assert items[5]["output"].startswith("[result cleared")
    assert items[5]["call_id"] == "call_3"
    # Encrypted items are counted as well, for the model that gets them.
    more = view.count_tokens("o200k_base", MessageFormWeights(ONE, None)) - view.count_tokens(
        "o200k_base"
    )
    assert more == 6 * int(160 * 3 / 16)
    other = MessageFormWeights("another", None)
    assert view.count_tokens("o200k_base", other) == view.count_tokens("o200k_base")


@pytest.mark.parametrize(
    "form",
    [ChatMessageForm(ONE, None, "breakpoint"), ResponsesMessageForm(ONE, True, "breakpoint")],
)
def test_marks_are_at_the_end_of_the_system_part_and_of_the_last_two_requests(
    conversation: Conversation, form: MessageEncoding
) -> None:
    history = add(conversation, 1, reply(items=ITEMS))
    history = add(history, 2, reply(items=ITEMS))
    # A reply without calls gets no cache mark: endpoints accept none on a model's text.
    history = history.append_reply(reply_message(3, reply(calls=[])), None)
    view = ContextView(history, Compaction())
    messages = json.loads(b"[%b]" % b",".join(view.wire_bytes(form)))
    marked = [n for n, each in enumerate(messages) if "prompt_cache_breakpoint" in str(each)]
    assert [messages[n].get("role") or messages[n]["type"] for n in marked] == (
        ["system", "tool", "tool"]
        if isinstance(form, ChatMessageForm)
        else ["system", "function_call_output", "function_call_output"]
    )
    assert marked[0] == 0
    [part] = messages[0]["content"]
    assert part["prompt_cache_breakpoint"] == {"mode": "explicit"}
    assert part["text"] == "You work."


def test_the_bytes_of_what_nobody_wants_back_are_those_that_are_stored(
    conversation: Conversation,
) -> None:
    history = add(conversation, 1, reply())
    assert history.wire_bytes(0, None, ChatMessageForm(ONE, None)) == history.wire_bytes()
    assert history.provider_data(2) is None
    assert history.without_provider_data == history.files
    assert encode_without_credentials(sent(history, None)[0]) == history.wire_bytes()[0]


@pytest.mark.parametrize("items", [True, False])
def test_a_written_text_is_cleared_from_the_provider_s_own_items_too(
    conversation: Conversation, items: bool
) -> None:
    arguments = json.dumps({"path": "a.md", "content": "tea " * 100})
    wrote = {**CALL, "name": "write_file", "arguments": arguments}
    written = reply(items=[REASONING, wrote], calls=[("write_file", arguments)])
    view = ContextView(add(conversation, 1, written), Compaction(cleared=4))
    shown = json.loads(b"[%b]" % b",".join(view.wire_bytes(ResponsesMessageForm(ONE, items))))
    called = next(item for item in shown if item["type"] == "function_call")
    assert json.loads(called["arguments"]) == {"path": "a.md", "content": WRITTEN}
    assert (REASONING in shown) is items
