"""Files are cut into passages without losing a word."""

import time

import pytest

from activities.search.search_index import MAX_CHARACTERS, split_passages

PARAGRAPHS = "\n\n".join(f"# Part {n}\n\n{'word ' * 60}\n{'more ' * 60}" for n in range(20))


@pytest.mark.parametrize(
    "text",
    [PARAGRAPHS, "x" * 5000, "\n\n\n", "", "one\n", "a\n" * 5000, "\ufeffbegins", "\r\n" * 9],
)
def test_nothing_is_lost_and_nothing_too_long(text: str) -> None:
    cut = list(split_passages(text.encode()))
    assert "".join("".join(p.text for p in cut).split()) == "".join(text.split())
    assert all(0 < len(p.text) <= MAX_CHARACTERS for p in cut)


def test_a_passage_names_the_line_it_begins_on() -> None:
    lines = PARAGRAPHS.splitlines()
    for passage in split_passages(PARAGRAPHS.encode()):
        assert passage.text.startswith(lines[passage.line - 1].strip())


def test_what_is_no_text_has_none() -> None:
    assert list(split_passages(b"\xff\xfe\x00")) == []


def test_a_large_file_takes_linear_time() -> None:
    def seconds(size: int) -> float:
        data = b"some words of a line\n" * size
        start = time.process_time()
        sum(1 for _ in split_passages(data))
        return time.process_time() - start

    seconds(1000)
    short = min(seconds(20_000) for _ in range(3))
    assert min(seconds(200_000) for _ in range(3)) < 30 * max(short, 0.005)
