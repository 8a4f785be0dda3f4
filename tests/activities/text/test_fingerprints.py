"""Equal content has an equal fingerprint, and errors are told apart by kind."""

import pytest

from activities.text.fingerprints import (
    LENGTH,
    arguments_fingerprint,
    error_fingerprint,
    poll_fingerprint,
    result_fingerprint,
    text_fingerprint,
)


def test_arguments_are_compared_by_what_they_mean() -> None:
    assert arguments_fingerprint('{"a": 1, "b": [2]}') == arguments_fingerprint('{"b":[2],"a":1}')
    assert arguments_fingerprint("") == arguments_fingerprint("{}")
    assert arguments_fingerprint('{"a": 1}') != arguments_fingerprint('{"a": 2}')
    assert arguments_fingerprint('{"a": "ü"}') == arguments_fingerprint('{"a": "\\u00fc"}')


@pytest.mark.parametrize("raw", ['{"a": ', "[" * 100_000, "\ud83d", '{"a": "\\ud83d"}', "NaN"])
def test_arguments_of_any_form_have_one(raw: str) -> None:
    assert len(arguments_fingerprint(raw)) == LENGTH


def test_texts() -> None:
    assert text_fingerprint("a") == text_fingerprint("a") != text_fingerprint("b")
    # A number with more digits than may be parsed.
    assert result_fingerprint("7" * 500_000) != result_fingerprint("7" * 500_001)
    assert len(text_fingerprint("\ud83d" * 10)) == LENGTH


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("There is no file 'a.md'.", "There is no file 'notes/b.md'."),
        ("notes/a.md does not contain that text.", "b.md does not contain that text."),
        (
            "a.md has 12 lines; offset 90 is past its end.",
            "b.md has 1,300 lines; offset 2000 is past its end.",
        ),
        ("read C:\\x\\y: denied", "read C:\\z: denied"),
    ],
)
def test_numbers_and_names_make_no_other_error(one: str, other: str) -> None:
    assert text_fingerprint(one) != text_fingerprint(other)
    assert error_fingerprint(one) == error_fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1 failed in 0.12s", "1 failed in 1.04s", True),
        ("ok  pkg/a\t0.005s", "ok  pkg/a\t0.011s", True),
        ("Ran 3 tests in 0.001 seconds", "Ran 3 tests in 0.002 seconds", True),
        ("passes (12ms)", "passes (9 ms)", True),
        ("<A object at 0x7f3a10c4>", "<A object at 0x7f99d2b0>", True),
        ("2 failed in 0.12s", "1 failed in 0.12s", False),
        ("running for 30 s", "running for 35 s", False),
        ("elapsed 12.5s of 300s", "elapsed 12.9s of 300s", False),
        ("copied 12.5 s / 300.0 s", "copied 14.5 s / 300.0 s", False),
        ("version 1.2", "version 1.3", False),
    ],
)
def test_how_long_it_took_makes_no_other_result(one: str, other: str, same: bool) -> None:
    assert (result_fingerprint(one) == result_fingerprint(other)) is same


def test_another_error_is_another() -> None:
    assert error_fingerprint("There is no file 'a.md'.") != error_fingerprint(
        "'a.md' is not a text file."
    )


def test_a_poll_that_tells_how_long_it_waits_changes_by_the_second() -> None:
    assert result_fingerprint("running for 12.5 s") == result_fingerprint("running for 14.5 s")
    assert poll_fingerprint("running for 12.5 s") != poll_fingerprint("running for 14.5 s")
    assert poll_fingerprint("idle, asked in 0.12 s, 31 ms") == poll_fingerprint(
        "idle, asked in 0.34 s, 9.5 ms"
    )
