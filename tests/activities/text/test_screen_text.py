"""What a screen shows of a program's output."""

import time

import pytest

from activities.text.screen_text import show_on_screen
from tests.soak import patient


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain\n\ttea\n", "plain\n\ttea\n"),
        ("\x1b[1;31mred\x1b[0m and \x1b[38;5;9mmore\x1b[m\n", "red and more\n"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("  9 %\r 50 %\r100 %\ndone\n", "100 %\ndone\n"),
        ("a long line\rshort", "shortg line"),
        ("a long line\r\x1b[Kshort", "short"),
        ("a long line\x1b[2K\rshort", "short"),
        ("x: 1\ny: 1\n\x1b[2A\x1b[2Kx: 2\n\x1b[2Ky: 2\n", "x: 2\ny: 2\n"),
        ("below\nis\nold\x1b[2F\x1b[Jnew", "new"),
        ("spin |\b/\b-", "spin -"),
        ("\x1b]0;title\x07ready", "ready"),
        ("\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b[?25lhidden\x1b[?25h\x1b(B\x1b=\x1b", "hidden"),
        ("kept\x1b[2J\x1b[H\x1bc too", "kept too"),
        ("nul\x00 bell\x07 end\x7f", "nul bell end"),
        ("\x9b32mgreen", "green"),
        ("tests\x1b[30Gpassed", f"{'tests':<29}passed"),
    ],
)
def test_output_is_shown_as_on_a_screen(written: str, shown: str) -> None:
    assert show_on_screen(written) == shown


def test_a_cursor_that_jumps_makes_no_long_text() -> None:
    written = "\x1b[99999Cx\n" * 50_000
    assert len(show_on_screen(written)) < len(written)


def test_a_megabyte_of_a_progress_bar_takes_a_moment() -> None:
    written = "".join(f"\r\x1b[32m{number} of 50000\x1b[0m" for number in range(45_000))
    begun = time.process_time()
    assert show_on_screen(written) == "44999 of 50000"
    assert time.process_time() - begun < patient(5)
