"""Which of the quoted passages a statement covers."""

import pytest

from activities.requirements.text.carried import carried_passages, repeats_sentence, says_something

CHECK = "The kettle in room 1 shall be checked every 2 days by staff."
RULES = [
    f"The {part} shall be {state}."
    for part, state in (
        ("kettle", "clean"), ("pot", "warm"), ("cup", "whole"), ("spoon", "dry"), ("tray", "flat"),
        ("sieve", "fine"), ("lid", "tight"), ("jug", "full"),
    )
]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "passages", "covered"),
    [
        # A paraphrase may share no word with what it says.
        ("The head of security has to give consent.", ["The CISO shall approve it."], [0]),
        ("Ger\u00e4te sind sauber zu halten.", RULES[:3], [0, 1, 2]),
        # As many as it has parts.
        ("Kettles are clean, pots warm, cups whole, spoons dry, trays flat, sieves fine, "
         "lids tight and jugs full.", RULES, list(range(8))),
        ("Kessel m\u00fcssen sauber sein, Kannen warm, Tassen ganz und L\u00f6ffel trocken.",
         RULES[:4], list(range(4))),
        # Words and numbers decide which of too many.
        ("The jug, the lid and the spoon shall be good.", RULES, [3, 6, 7]),
        ("All equipment shall comply.", RULES, [0, 1, 2]),
        ("All, and all, and all of it, or all: equipment shall, and shall, comply.", RULES,
         [0, 1, 2]),
        ("Lids 1, jugs 1, lids 2, jugs 2: they shall be good.", RULES, [0, 1, 2, 6, 7]),
        ("All of it must be so.", RULES, []),
    ],
)  # fmt: skip
def test_a_statement_covers_as_many_passages_as_it_has_parts(
    statement: str, passages: list[str], covered: list[int]
) -> None:
    keyed = {str(n): passage for n, passage in enumerate(passages)}
    assert carried_passages(statement, keyed) == {str(n) for n in covered}


def test_the_words_before_a_list_may_say_nothing() -> None:
    assert says_something("All staff must do this each evening:")
    assert not says_something("The system shall:")


def test_a_repeated_sentence_has_all_its_words_and_numbers_in_the_statement() -> None:
    assert repeats_sentence("Staff check each kettle in room 1 every 2 days.", CHECK)
    assert not repeats_sentence(CHECK, CHECK.replace("1", "9"))
    assert not repeats_sentence("", CHECK)
