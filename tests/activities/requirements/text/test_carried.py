"""Which of the quoted sentences a statement says."""

import pytest

from activities.documents.pages import Page
from activities.requirements.text.candidate_sentences import identify_candidates
from activities.requirements.text.carried import carried_sentences, repeats_sentence

CHECKS = (
    "The kettle in room 1 shall be checked every 2 days by staff.\n\n"
    "The pot in room 2 shall be checked every 3 days by staff.\n\n"
    "The cup in room 3 shall be checked every 4 days by staff."
)
CLEAN = "The kettle shall be clean.\n\nThe pot shall be clean.\n\nThe cup shall be clean."
KEPT = "Records must be kept for 10 years. They should be stored in a dry place."
EVENING = "All staff must do this each evening:\n\n- lock all doors;\n- close windows;"


RULES = "\n\n".join(
    f"The {part} shall be {state}."
    for part, state in (
        ("kettle", "clean"), ("pot", "warm"), ("cup", "whole"), ("spoon", "dry"), ("tray", "flat"),
        ("sieve", "fine"), ("lid", "tight"), ("jug", "full"),
    )
)  # fmt: skip


def carried(statement: str, text: str) -> list[int]:
    sentences = [each for each in identify_candidates([Page(1, text)]) if each.binds]
    return [int(each.id[2:]) for each in carried_sentences(statement, sentences)]


@pytest.mark.parametrize(
    ("text", "statement", "ids"),
    [
        # A paraphrase may share no word with what it says.
        ("Backups shall be made every 24 hours.", "Data is to be secured daily.", [1]),
        ("The CISO shall approve it.", "The head of security has to give consent.", [1]),
        ("The pot shall be clean.", "Die Kanne muss sauber sein.", [1]),
        (CLEAN, "All equipment shall be clean.", [1, 2, 3]),
        (KEPT, "Records must be kept dry for a decade.", [1, 2]),
        (KEPT, "Unterlagen m\u00fcssen 10 Jahre an einem trockenen Ort bleiben.", [1, 2]),
        (EVENING, "All staff must do the round of the evening.", [1, 2, 3]),
        # Many need more words than few do, and something of each.
        (RULES, "The kettle is clean, the pot warm, the cup whole, the spoon dry, the tray flat, "
                "the sieve fine, and the lid tight.", [1, 2, 3, 4, 5, 6, 7]),
        (RULES, "The kettle and the pot shall be clean and warm, as in all good kitchens.", [1, 2]),
        (RULES, "The system shall comply with all that is written here, in every respect.", [1]),
        (CHECKS, "Do all that.", [1]),
    ],
)  # fmt: skip
def test_a_statement_says_as_many_sentences_as_it_has_room_and_words_for(
    text: str, statement: str, ids: list[int]
) -> None:
    assert carried(statement, text) == ids


def test_a_repeated_sentence_has_all_its_words_and_numbers_in_the_statement() -> None:
    first, second, _ = identify_candidates([Page(1, CHECKS)])
    assert repeats_sentence("Staff check each kettle in room 1 every 2 days.", first)
    assert not repeats_sentence(first.text, second)
    assert not repeats_sentence("", first)
