"""Likeness: what is the same is near 1, what has nothing in common near 0."""

import time

import pytest

from activities.search.embedding import EmbeddingsFailed, choose_embedder
from activities.search.text_likeness import compute_text_likeness
from config.schema.model_settings import Embeddings
from tests.activities.search.endpoint import serving
from tests.soak import patient

TEXT = "Every invoice must be kept for ten years."


def test_the_same_words_are_alike_whatever_their_case_and_punctuation() -> None:
    assert compute_text_likeness(TEXT, [TEXT, "every INVOICE must be kept, for ten years"]) == [
        1.0,
        1.0,
    ]


def test_a_variant_is_nearer_than_another_subject() -> None:
    variant, related, other = compute_text_likeness(
        TEXT,
        [
            "Every invoice must be kept for at least ten years.",
            "Invoices are to be retained ten years.",
            "The user shall log in with a password.",
        ],
    )
    assert variant > 0.85 > related > 0.3 > other


def test_umlauts_word_order_and_empty_texts() -> None:
    assert compute_text_likeness("Prüfung der Belege", ["prufung der belege"]) == [1.0]
    [turned] = compute_text_likeness("the buyer pays the seller", ["the seller pays the buyer"])
    assert 0.8 < turned < 1
    assert compute_text_likeness(TEXT, ["", "!?"]) == [0.0, 0.0]
    assert compute_text_likeness("", [""]) == [0.0]


BOILERPLATE = [
    "The operator shall train all employees once a year.",
    "The operator shall log every access to the archive with user, date and time.",
    "The operator shall provide the tax authority with read access to the archive on request.",
    "The operator shall replace the batteries of smoke detectors every two years.",
    "The operator shall publish the opening hours of the office.",
    "Der Betreiber muss die Mitarbeiter jährlich im Brandschutz schulen.",
    "Der Betreiber muss eine Verfahrensdokumentation erstellen und aktuell halten.",
    "Der Betreiber muss die Feuerlöscher alle zwei Jahre prüfen lassen.",
]
SAME = [
    # Last, without regard to rarity: the rank of the one that says the same, and how many of the
    # others are at 0.3 or more.
    (
        "The operator shall keep accounting records for ten years after the fiscal year ends.",
        "The operator shall store all bookkeeping documents for ten years from the financial year.",
        (1, 5),
    ),
    (
        "The operator shall encrypt personal data at rest with AES-256.",
        "Personal data that are stored must be encrypted using AES-256 or stronger.",
        (1, 6),
    ),
    (
        "The operator shall notify the supervisory authority of a data breach within 72 hours.",
        "Breaches have to be reported to the supervisory authority not later than 72 hours on.",
        (3, 7),
    ),
    (
        "Der Betreiber muss Buchungsbelege zehn Jahre aufbewahren.",
        "Belege der Buchführung sind vom Betreiber zehn Jahre lang aufzubewahren.",
        (1, 4),
    ),
    (
        "Der Betreiber muss jede Änderung an gebuchten Daten unveränderbar protokollieren.",
        "Änderungen an gebuchten Daten werden vollständig und unveränderbar protokolliert.",
        (1, 4),
    ),
]


@pytest.mark.parametrize(("text", "same", "before"), SAME)
def test_words_that_most_requirements_have_make_none_alike(
    text: str, same: str, before: tuple[int, int]
) -> None:
    rest = [one for pair in SAME for one in pair[:2] if one not in (text, same)]
    others = [same, *BOILERPLATE, *rest]

    def ranked(rarity: bool) -> tuple[int, int]:
        own, *likenesses = compute_text_likeness(text, others, rarity=rarity)
        return 1 + sum(each > own for each in likenesses), sum(each >= 0.3 for each in likenesses)

    assert ranked(rarity=False) == before
    assert ranked(rarity=True) == (1, 0)
    assert compute_text_likeness(text, others, rarity=True)[0] >= 0.3


def test_another_subject_in_the_same_sentence_is_no_duplicate() -> None:
    text = "The operator shall inspect the pumps once a year."
    others = ["The operator must inspect the pumps once a year.", text.replace("pumps", "valves")]
    assert compute_text_likeness(text, others)[1] > 0.8
    must, valves = compute_text_likeness(text, [*others, *BOILERPLATE], rarity=True)[:2]
    assert 0.85 > must > valves
    assert compute_text_likeness(text, [text], rarity=True) == [1.0]


def test_thousands_are_compared_in_moments() -> None:
    began = time.monotonic()
    likenesses = compute_text_likeness(TEXT, [f"{TEXT} {n}" for n in range(5000)])
    assert time.monotonic() - began < patient(10)
    assert len(likenesses) == 5000


def test_embeddings_see_paraphrases_and_their_failure_is_told() -> None:
    with serving() as endpoint:
        by = choose_embedder(Embeddings(model="m", base_url=endpoint.url))
        paraphrase, other = compute_text_likeness(
            "invoices kept", ["Storing bills", "A kettle"], by=by
        )
        assert paraphrase > 0.9
        assert other < 0.1
        assert compute_text_likeness(TEXT, [], by=by) == []
        # Texts are sent only once.
        text_count = len(endpoint.texts)
        assert compute_text_likeness("invoices kept", ["Storing bills"], by=by) == [paraphrase]
        assert endpoint.texts[text_count:] == ["invoices kept"]
        endpoint.fails_after = 0
        with pytest.raises(EmbeddingsFailed):
            compute_text_likeness(TEXT, [TEXT], by=by)
