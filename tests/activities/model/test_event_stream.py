"""Server-sent events, however they are cut."""

import pytest

from activities.model.reply_stream import EventParser

STREAM = 'data: {"a":"\u2028é"}\n\n: still here\n\nevent: x\ndata: 1\ndata:2\n\ndata: [DONE]\n\n'


def read(stream: bytes, size: int) -> tuple[list[bytes], bool]:
    events = EventParser()
    pieces = [stream[offset : offset + size] for offset in range(0, len(stream), size)]
    return [one.data for piece in pieces for one in events.feed(piece)], events.is_over


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_the_same_whatever_the_pieces_and_line_ends(end: str, size: int) -> None:
    stream = STREAM.replace("\n", end).encode() + b": the end\n"
    assert read(stream, size) == (['{"a":"\u2028é"}'.encode(), b"1\n2"], True)


def test_an_event_that_is_cut_short_is_none() -> None:
    assert read(b"data: 1\n\ndata: 2\n", 4) == ([b"1"], False)


def test_an_event_without_data_is_none() -> None:
    assert read(b"data: \n\ndata\n\ndata: 1\n\n", 5) == ([b"1"], False)


def test_a_byte_order_mark_is_no_part_of_the_first_event() -> None:
    assert read(b"\xef\xbb\xbfdata: 1\n\n", 2) == ([b"1"], False)


def test_nothing_after_the_last_event_is_read() -> None:
    assert read(b"data: [DONE]\n\ndata: 1\n\n", 100) == ([], True)
