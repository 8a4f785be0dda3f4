"""Lines that are read from right to left, as they stand on paper and as they are read."""

import pytest

from activities.documents.bidi import is_right_to_left, order_bidi_letters


def read(shown: str) -> str:
    """Return the reading order of letters of equal width shown from the left; spaces are gaps."""
    places = [place for place, letter in enumerate(shown) if letter != " "]
    letters = [shown[place] for place in places]
    return order_bidi_letters(letters, lambda n: places[n], lambda n: places[n] + 1, 0.5)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        # Hebrew letters, with Latin capitals, in the order of the page from the left.
        ("\u05d3\u05d2 \u05d1\u05d0", "\u05d0\u05d1 \u05d2\u05d3"),
        ("\u05d3\u05d2 12.5 PDF \u05d1\u05d0", "\u05d0\u05d1 12.5 PDF \u05d2\u05d3"),
        ("(\u05d1) \u05d0", "\u05d0 (\u05d1)"),
        (
            "See \u05d1\u05d0 \u05d3\u05d2 for the word.",
            "See \u05d2\u05d3 \u05d0\u05d1 for the word.",
        ),
        ("\u0662\u0661 \u0628\u0627", "\u0627\u0628 \u0662\u0661"),
    ],
)
def test_a_line_is_read_in_its_directions(shown, text):
    assert read(shown) == text


def test_points_stay_with_their_letter():
    letters = ["\u05d1", "\u05b8", "\u05d0", "\u05b7"]
    # Each vowel point is below its letter and follows it.
    places = [0.0, 0.3, 1.0, 1.2]
    shown = order_bidi_letters(
        letters, lambda n: places[n], lambda n: places[n] + 0.5 + 0.5 * (n % 2 == 0), 0.5
    )
    assert shown == "\u05d0\u05b7\u05d1\u05b8"


def test_letters_of_a_ligature_keep_their_order():
    places = [1.0, 1.0, 0.0]
    text = order_bidi_letters(
        ["\u0644", "\u0627", "\u062a"], lambda n: places[n], lambda n: places[n] + 1, 0.5
    )
    assert text == "\u0644\u0627\u062a"


def test_only_scripts_from_right_to_left_are_concerned():
    assert is_right_to_left("a \u0627")
    assert not is_right_to_left("Größe \u0416 \u4e00 12")
