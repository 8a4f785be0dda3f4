"""Relevance and mentions: what the form of a text says."""

import pytest

from activities.documents.pages import Page
from activities.requirements.text.relevance import judge_relevance
from activities.requirements.tools.candidate_tools import find_mentions


@pytest.mark.parametrize(
    "text",
    [
        "The controller shall notify the authority within 72 hours.",
        "Belege müssen zehn Jahre aufbewahrt werden.",
        "Records should be reviewed by the owner.",
        "The customer may cancel the contract.",
    ],
)
def test_demands_are_relevant(text: str) -> None:
    assert judge_relevance(text).score >= 0.4


@pytest.mark.parametrize(
    "text",
    [
        "The weather was fine on the day of the audit.",
        "For example, a user may print the page.",
        "Must we keep it?",
        "Zum Beispiel darf der Kunde bar zahlen.",
    ],
)
def test_asides_questions_and_tales_are_not(text: str) -> None:
    assert judge_relevance(text).score < 0.4


def test_demands_rank_by_what_they_demand() -> None:
    scores = [
        judge_relevance(f"The owner {word} keep the records.").score
        for word in ("must", "should", "may")
    ]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3


def test_mentions_have_their_pages_and_come_by_how_often_they_stand() -> None:
    pages = [
        Page(1, 'Everything that the ERP sends is an "electronic invoice" here.'),
        Page(2, "It goes from the ERP to the Tax Office. Then the ERP waits."),
        Page(3, "Under the GDPR the file of a Person is kept."),
    ]
    mentions = {mention.text: mention for mention in find_mentions(pages)}
    assert (mentions["ERP"].kind, mentions["ERP"].count, mentions["ERP"].pages) == (
        "abbreviation",
        3,
        (1, 2),
    )
    assert mentions["electronic invoice"].kind == "defined term"
    assert mentions["Tax Office"].pages == (2,)
    assert mentions["GDPR"].kind == "regulation"
    assert "Person" not in mentions, "a capitalised word that stands once is no term"
    assert find_mentions(pages)[0].text == "ERP"
    assert find_mentions([]) == []
