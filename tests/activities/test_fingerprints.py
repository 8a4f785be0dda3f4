"""Equal content has an equal fingerprint, and errors are told apart by kind."""

from __future__ import annotations

import pytest

from activities.fingerprints import LENGTH, of_arguments, of_error, of_text


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


def test_another_error_is_another() -> None:
    assert of_error("There is no file 'a.md'.") != of_error("'a.md' is not a text file.")
