"""Token counts: the model's own encoding, without a network, and paid for once."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from activities.checkpoints import Files, Root, open_checkpoints
from activities.job.conversation import Conversation
from activities.text.tokens import clip_to_tokens, count_tokens, message_tokens, token_encoding_name

REPOSITORY = Path(__file__).resolve().parents[3]
OFFLINE = """
import sys

def refuse(event, args):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise SystemExit(f"reaches out: {event} {args}")

sys.addaudithook(refuse)
from activities.text.tokens import count_tokens
print(count_tokens("hello world"), count_tokens("hello world", "cl100k_base"))
"""


def test_the_known_example() -> None:
    assert count_tokens("hello world") == 2
    assert count_tokens("") == 0
    assert count_tokens("<|endoftext|>") > 1


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt2", "o200k_base"),
        ("somebody/else-70b", "o200k_base"),
    ],
)
def test_a_model_has_its_encoding_and_an_unknown_one_the_newest(model: str, encoding: str) -> None:
    assert token_encoding_name(model) == encoding


def test_counting_needs_no_network_and_no_file_kept_from_before(tmp_path: Path) -> None:
    """Counting works in a new process without downloaded files."""
    ran = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        env={"TIKTOKEN_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stdout.split() == ["2", "2"], ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_texts_of_calls_count() -> None:
    message = b'{"role":"assistant","content":null}'
    called = (
        b'{"role":"assistant","content":null,"tool_calls":'
        b'[{"id":"s1c0","function":{"name":"read_file","arguments":"{\\"path\\":\\"a.md\\"}"}}]}'
    )
    more = count_tokens('read_file {"path":"a.md"}')
    assert message_tokens(called, "o200k_base") == message_tokens(message, "o200k_base") + more


def test_a_step_costs_the_count_of_its_new_messages_alone(tmp_path: Path) -> None:
    root = Root.open(tmp_path, create=True)
    transcript = Conversation(Files.empty(open_checkpoints(root, "job", create=True).store))
    words = [f"leaf {number} of the tea " * 200 for number in range(400)]
    transcript = transcript.append(*({"role": "user", "content": text} for text in words))

    def seconds(conversation: Conversation) -> tuple[int, float]:
        begun = time.process_time()
        return conversation.count_tokens("o200k_base"), time.process_time() - begun

    whole, first = seconds(transcript)
    longer, again = seconds(transcript.append({"role": "user", "content": words[0]}))
    assert longer - whole == 4 + count_tokens(words[0])
    assert again < first / 5


def test_what_is_cut_has_no_more_tokens_than_asked_for() -> None:
    text = "tea leaf " * 1000
    cut = clip_to_tokens(text, 100, "the rest is in a.md")
    assert cut.startswith("tea leaf tea leaf")
    assert cut.endswith("the rest is in a.md]")
    assert count_tokens(cut.partition("\n[")[0]) <= 100
    assert clip_to_tokens(text, 10_000, "nowhere") == text
