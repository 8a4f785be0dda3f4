"""Reasoning that came in pieces is what it would have been in one."""

from typing import Any

from activities.model.chat_reply import MAX_CHARACTERS, ReplyReasoning


def gathered(*deltas: dict[str, Any]) -> ReplyReasoning:
    reasoning = ReplyReasoning()
    for delta in deltas:
        reasoning.add(delta)
    return reasoning


def test_text_is_joined_and_an_empty_one_is_one() -> None:
    both = gathered({"reasoning_content": "He"}, {"content": "x"}, {"reasoning_content": "y."})
    assert (both.text, both.message_fields()) == ("Hey.", {"reasoning_content": "Hey."})
    assert gathered({"reasoning_content": ""}).message_fields() == {"reasoning_content": ""}
    assert gathered({"reasoning_content": None}, {"content": "x"}).message_fields() == {}
    assert gathered({"reasoning": "Hm."}).message_fields() == {"reasoning": "Hm."}


def detail(kind: str = "text", index: int = 0, **more: Any) -> dict[str, Any]:
    entry = {"type": f"reasoning.{kind}", "index": index, "format": "anthropic-claude-v1", **more}
    return {"reasoning_details": [entry]}


def test_entries_grow_until_they_are_signed() -> None:
    entries = gathered(
        detail(text="He"),
        detail(text="y."),
        detail(signature="c2ln"),
        detail(text="And"),
        detail("encrypted", 1, data="AAAA", id="a"),
        detail("encrypted", 1, data="BBBB", id="b"),
        detail("summary", 2, summary="In "),
        detail("summary", 2, summary="short."),
    ).message_fields()["reasoning_details"]
    assert [entry.get("text") or entry.get("data") or entry["summary"] for entry in entries] == [
        "Hey.", "And", "AAAA", "BBBB", "In short.",
    ]  # fmt: skip
    assert [entry.get("signature") for entry in entries] == ["c2ln", None, None, None, None]


def block(thinking: str, signature: str | None = None) -> dict[str, Any]:
    return {"thinking_blocks": [{"type": "thinking", "thinking": thinking, "signature": signature}]}


def test_blocks_are_whole_with_their_signature_however_it_comes() -> None:
    hidden = {"thinking_blocks": [{"type": "redacted_thinking", "data": "AAAA"}]}
    pieces = [block("He"), block("y.")]
    whole = {"type": "thinking", "thinking": "Hey.", "signature": "c2ln"}
    for last in (block("", "c2ln"), block("Hey.", "c2ln")):
        fields = gathered(*pieces, last, hidden, block("never signed")).message_fields()
        assert fields["thinking_blocks"] == [whole, *hidden["thinking_blocks"]]
    assert gathered(block("never signed")).message_fields() == {}


def test_more_than_can_be_kept_is_not_sent_back() -> None:
    assert gathered({"reasoning_content": "x" * MAX_CHARACTERS}).message_fields() == {}
