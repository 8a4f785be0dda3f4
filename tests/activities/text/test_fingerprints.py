"""Equal content has an equal fingerprint, and errors are told apart by kind."""

from __future__ import annotations

import pytest

from activities.text.fingerprints import LENGTH, of_arguments, of_error, of_poll, of_result, of_text


def test_arguments_are_compared_by_what_they_mean() -> None:
    assert of_arguments('{"a": 1, "b": [2]}') == of_arguments('{"b":[2],"a":1}')
    assert of_arguments("") == of_arguments("{}")
    assert of_arguments('{"a": 1}') != of_arguments('{"a": 2}')
    assert of_arguments('{"a": "ü"}') == of_arguments('{"a": "\\u00fc"}')


@pytest.mark.parametrize("raw", ['{"a": ', "[" * 100_000, "\ud83d", '{"a": "\\ud83d"}', "NaN"])
def test_arguments_of_any_form_have_one(raw: str) -> None:
    assert len(of_arguments(raw)) == LENGTH


def test_texts() -> None:
    assert of_text("a") == of_text("a") != of_text("b")
    # A number so long that it may not be read again from each of its digits.
    assert of_result("7" * 500_000) != of_result("7" * 500_001)
    assert len(of_text("\ud83d" * 10)) == LENGTH


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
    assert of_text(one) != of_text(other)
    assert of_error(one) == of_error(other)


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
    assert (of_result(one) == of_result(other)) is same


def test_another_error_is_another() -> None:
    assert of_error("There is no file 'a.md'.") != of_error("'a.md' is not a text file.")


def test_a_poll_that_tells_how_long_it_waits_changes_by_the_second() -> None:
    assert of_result("running for 12.5 s") == of_result("running for 14.5 s")
    assert of_poll("running for 12.5 s") != of_poll("running for 14.5 s")
    assert of_poll("idle, asked in 0.12 s, 31 ms") == of_poll("idle, asked in 0.34 s, 9.5 ms")
