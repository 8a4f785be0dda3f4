"""What a sample says of the requirements that may be missed."""

import random

from activities.requirements.completeness import DocumentDecisions, most_missed, risk_of_round

LIMIT = 0.05


def test_the_stated_bound_holds_in_95_of_100_documents() -> None:
    holds = 0
    for number in range(100):
        chance = random.Random(number)
        size = chance.choice([40, 240, 600])
        missed = set(
            chance.sample(range(size), int(size * chance.choice([0.03, 0.055, 0.07, 0.2])))
        )
        found: set[int] = set()
        decisions = DocumentDecisions(document="a")
        while decisions.next_sample(
            [(place, f"{number} {place}") for place in range(size) if place not in found], 20, LIMIT
        ):
            for sentence in decisions.rounds[-1].unread:
                sentence.is_requirement = sentence.page in missed
            found |= {hit.page for hit in decisions.hits}
        population = decisions.rounds[-1].population
        assert decisions.bound <= LIMIT
        holds += len(missed - found) <= decisions.bound * population
    assert holds >= 95


def test_the_bound_is_exact_for_small_documents() -> None:
    assert most_missed(10, 10, 0.04) == 0
    assert most_missed(10, 9, 0.04) == 1
    assert sum(risk_of_round(number) for number in range(1, 50)) <= LIMIT


def test_a_sample_is_as_large_as_the_share_of_found_requirements_needs() -> None:
    sentences = [(1, f"Sentence {n}.") for n in range(142)]
    read = {}
    for found in (0, 70, 4000):
        decisions = DocumentDecisions(document="a")
        while decisions.next_sample(sentences, 20, LIMIT, found):
            for sentence in decisions.rounds[-1].unread:
                sentence.is_requirement = False
        read[found] = len(decisions.rounds[-1].drawn)
        if found:
            assert found / (found + decisions.missed) >= 1 - LIMIT
    assert read == {0: 137, 70: 78, 4000: 46}


def test_the_same_text_gives_the_same_sample() -> None:
    sentences = [(1, f"Sentence {n}.") for n in range(200)]
    drawn = []
    for _ in range(2):
        decisions = DocumentDecisions(document="a")
        assert decisions.next_sample(sentences, 20, LIMIT) == 20
        assert decisions.next_sample(sentences, 20, LIMIT) == 0  # those have to be read first
        drawn.append([each.text for each in decisions.rounds[0].drawn])
    assert drawn[0] == drawn[1]
