"""Which of the quoted sentences a statement says."""

import pytest

from activities.documents.pages import Page
from activities.requirements.text.candidate_sentences import identify_candidates
from activities.requirements.text.carried import (
    carried_sentences,
    repeats_sentence,
    shares_content,
)

CHECKS = (
    "The kettle in room 1 shall be checked every 2 days by staff.\n\n"
    "The pot in room 2 shall be checked every 3 days by staff.\n\n"
    "The cup in room 3 shall be checked every 4 days by staff."
)
CLEAN = "The kettle shall be clean.\n\nThe pot shall be clean.\n\nThe cup shall be clean."
KEPT = "Records must be kept for 10 years. They should be stored in a dry place."
EVENING = "All staff must do this each evening:\n\n- lock all doors;\n- close windows;"


def carried(statement: str, text: str) -> list[str]:
    sentences = [each for each in identify_candidates([Page(1, text)]) if each.binds]
    return [each.id for each in carried_sentences(statement, sentences, text)]


@pytest.mark.parametrize(
    ("text", "statement", "ids"),
    [
        # One statement for what each sentence says of another thing.
        (CHECKS, "The rooms shall be checked by staff every 2 days.", []),
        (CHECKS, "The kettle in room 1 shall be checked every 2 days by staff.", [1]),
        (CHECKS, "Kettle, pot and cup in the rooms shall be checked every 2 days.", [1]),
        (CLEAN, "All equipment shall be clean.", []),
        (CLEAN, "Bananas shall be yellow.", []),
        # Several sentences of one requirement.
        (CLEAN, "Kettles, pots and cups shall be clean.", [1, 2, 3]),
        (KEPT, "Records must be kept dry for ten years.", [1, 2]),
        (KEPT, "Records must be kept for 10 years.", [1]),
        (EVENING, "All staff must lock all doors and close the windows.", [1, 2, 3]),
        (EVENING, "All staff must do the round of the evening.", [1, 2, 3]),
        # A translation has the numbers, and is not much shorter.
        (KEPT, "Unterlagen m\u00fcssen 10 Jahre an einem trockenen Ort bleiben.", [1, 2]),
        (KEPT, "Die Unterlagen m\u00fcssen aufbewahrt werden.", [2]),
        (CHECKS, "Etwas muss mit den R\u00e4umen getan werden.", [1]),
        ("The pot shall be clean.", "Die Kanne muss sauber sein.", [1]),
        # Of one sentence a statement has to share something.
        ("The pot shall be warm.", "Warmth of the can is to be kept.", [1]),
        ("The pot shall be warm.", "Something shall be done, as it says somewhere.", []),
        ("Der Zugang muss gepr\u00fcft werden.", "Eine Zugangspr\u00fcfung ist Pflicht.", [1]),
    ],
)  # fmt: skip
def test_a_statement_says_what_has_its_numbers_and_its_own_words(
    text: str, statement: str, ids: list[int]
) -> None:
    assert carried(statement, text) == [f"C-00{each}" for each in ids]


def test_a_statement_that_shares_nothing_is_not_from_its_passages() -> None:
    kettle = "The kettle in room 1 shall be checked every 2 days by staff."
    assert not shares_content("Bananas shall be yellow.", kettle)
    assert shares_content("Members of staff check it.", kettle)
    assert shares_content("Bananen m\u00fcssen gelb sein.", kettle)  # nobody can compare these
    assert shares_content("It is tested within two days.", kettle)


def test_a_repeated_sentence_has_all_its_words_and_numbers_in_the_statement() -> None:
    first, second, _ = identify_candidates([Page(1, CHECKS)])
    assert repeats_sentence("Staff check each kettle in room 1 every 2 days.", first)
    assert not repeats_sentence(first.text, second)
    assert not repeats_sentence("", first)
