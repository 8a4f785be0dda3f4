"""Messages keep their order, and adding one costs the same however many there are."""

import json
from pathlib import Path

import pytest

from activities.checkpoints import Files, Root, open_checkpoints
from activities.job.conversation import Conversation
from activities.job.conversation_calls import newest_calls, tool_call_id, tool_result_message
from activities.text.tokens import message_tokens


@pytest.fixture
def empty(tmp_path: Path) -> Conversation:
    root = Root.open(tmp_path, create=True)
    return Conversation(Files.empty(open_checkpoints(root, "job", create=True).store))


def stored(files: Files) -> int:
    """Return the size of all objects of the repository in bytes."""
    files.store.flush()
    return sum(path.stat().st_size for path in files.store.path.rglob("*") if path.is_file())


def texts(count: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"message {number}"} for number in range(count)]


def test_thousands_of_messages_keep_their_cost(empty: Conversation) -> None:
    messages, conversation, cost = texts(2200), empty, []
    for start, end in ((0, 40), (41, 999), (1000, 2199)):
        conversation = conversation.append(*messages[start:end])
        before = stored(conversation.files)
        conversation = conversation.append(messages[end])
        cost.append(stored(conversation.files) - before)
    assert len(conversation) == 2200
    # From the thousandth message on there is one more tree level.
    assert cost[1] < 2 * cost[0] + 1000
    assert cost[2] < cost[1] + 1500


def test_any_range_of_thousands_of_messages_is_found(empty: Conversation) -> None:
    messages = texts(2200)
    conversation = empty.append(*messages)
    lines = [json.dumps(message, separators=(",", ":")).encode() for message in messages]
    tokens = [message_tokens(line, "o200k_base") for line in lines]
    ends = (0, 1, 31, 32, 33, 1023, 1024, 1025, 1500, 2047, 2048, 2049, 2175, 2176, 2199, 2200)
    for start in ends:
        for stop in ends:
            assert b",".join(conversation.wire_bytes(start, stop)) == b",".join(lines[start:stop])
            assert conversation.count_tokens("o200k_base", start, stop) == sum(tokens[start:stop])
    assert list(conversation.stored_messages()) == lines
    assert [conversation.message(number)["content"] for number in (0, 640, 1024, 2199)] == [
        f"message {number}" for number in (0, 640, 1024, 2199)
    ]
    # A full case or shelf counts as one piece.
    assert len(conversation.wire_bytes()) < 100


def test_an_earlier_handle_stays_as_it_was(empty: Conversation) -> None:
    one = empty.append({"role": "user", "content": "a"})
    two, other = one.append({"role": "user", "content": "b"}), one.append({"role": "x"})
    assert (len(empty), len(one), len(two), len(other)) == (0, 1, 2, 2)
    assert one.append({"role": "user", "content": "b"}).files == two.files


def test_several_at_once_are_the_same_as_one_after_the_other(empty: Conversation) -> None:
    messages = [{"role": "user", "content": str(n)} for n in range(70)]
    single = empty
    for message in messages:
        single = single.append(message)
    assert empty.append(*messages).files == single.files


def test_lone_surrogates_can_be_stored_and_sent(empty: Conversation) -> None:
    conversation = empty.append({"role": "user", "content": "a\ud800b\udcff", "x": "\U0001f375"})
    assert conversation.messages() == [{"role": "user", "content": "a?b?", "x": "\U0001f375"}]
    assert conversation.wire_bytes()[0].decode()


def test_calls_of_a_step_are_found_behind_their_results(empty: Conversation) -> None:
    calls = [{"id": tool_call_id(3, n), "function": {"name": "wait"}} for n in (0, 1)]
    conversation = empty.append(
        {"role": "assistant", "tool_calls": calls}, tool_result_message(3, 0, "ok")
    )
    assert newest_calls(conversation, 3) == calls
    for step in (2, 4):
        with pytest.raises(LookupError, match=f"step {step}"):
            newest_calls(conversation, step)


@pytest.mark.parametrize("newest", [{"role": "assistant", "content": "text only"}, None])
def test_a_reply_without_calls_hides_the_one_before(
    empty: Conversation, newest: dict[str, str] | None
) -> None:
    conversation = empty.append(*([newest] if newest else []))
    with pytest.raises(LookupError):
        newest_calls(conversation, 1)
