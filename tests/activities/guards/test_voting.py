"""Deny beats ask beats rewrite beats allow, whatever the order, and rewrites pass the others."""

from itertools import permutations
from typing import Any

import pytest

from activities.guards.voting import ALLOW, Vote, Voter, settle_votes

WORDS = ("deny", "ask", "rewrite", "allow")
GIVEN = {"path": "a.md"}


def voter(word: Any, name: str = "", *, costly: bool = False) -> Voter:
    return Voter(
        name or word,
        lambda arguments: Vote(word, f"{word}!", {"path": "b.md"} if word == "rewrite" else {}),
        costly,
    )


@pytest.mark.parametrize("costly", [(), ("deny",), ("ask",), ("rewrite",), ("deny", "ask")])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_strongest_word_counts_in_every_order(count: int, costly: tuple[str, ...]) -> None:
    for words in permutations(WORDS, count):
        outcome = settle_votes([voter(word, costly=word in costly) for word in words], GIVEN)
        strongest = min(words, key=WORDS.index)
        assert bool(outcome.denied) == (strongest == "deny"), words
        assert bool(outcome.asks) == (strongest == "ask"), words
        assert outcome.guard == (strongest if strongest in ("deny", "ask") else "")
        if strongest == "rewrite":
            assert (outcome.arguments, outcome.rewriters) == ({"path": "b.md"}, ("rewrite",))
        if strongest == "allow":
            assert outcome.arguments == GIVEN


def test_a_person_is_asked_before_anything_is_rewritten() -> None:
    for voters in permutations([voter("ask"), voter("rewrite")]):
        outcome = settle_votes(voters, GIVEN)
        assert (outcome.asks, outcome.rewriters, outcome.arguments) == ("ask!", (), GIVEN)


def test_rewritten_arguments_pass_the_others_again() -> None:
    def no_b(arguments: dict[str, Any]) -> Vote:
        return Vote("deny", "not b") if arguments["path"] == "b.md" else ALLOW

    for voters in permutations([voter("rewrite"), Voter("no-b", no_b)]):
        outcome = settle_votes(voters, GIVEN)
        assert (outcome.denied, outcome.guard) == ("not b", "no-b")


def test_rewrites_that_chase_each_other_come_to_an_end() -> None:
    consultations = []

    def growing(name: str) -> Voter:
        def grow(arguments: dict[str, Any]) -> Vote:
            consultations.append(name)
            return Vote("rewrite", "", {"path": arguments["path"] + name})

        return Voter(name, grow)

    outcome = settle_votes([growing("x"), growing("y")], {"path": ""})
    assert outcome.arguments == {"path": "xy"}
    assert outcome.rewriters == ("x", "y")
    assert len(consultations) < 10


def test_what_a_person_approved_is_not_asked_again_but_still_denied() -> None:
    assert settle_votes([voter("ask")], GIVEN, approved=True).guard == ""
    assert settle_votes([voter("ask"), voter("deny")], GIVEN, approved=True).guard == "deny"


def test_a_bypass_passes_over_its_guard_alone() -> None:
    both = [voter("deny", "one"), voter("deny", "two")]
    assert settle_votes(both, GIVEN, bypass=["one"]).guard == "two"
    outcome = settle_votes(both[:1], GIVEN, bypass=["one", "two"])
    assert (outcome.guard, outcome.bypassed_guard) == ("", "one")
    # Only one refusal is bypassed, whatever else is allowed.
    assert settle_votes(both, GIVEN, bypass=["one", "two"]).guard == "two"
    assert settle_votes([voter("allow", "one")], GIVEN, bypass=["one"]).bypassed_guard == ""


def test_who_costs_is_not_asked_when_the_call_is_denied_anyway() -> None:
    def never(arguments: dict[str, Any]) -> Vote:
        raise AssertionError("asked")

    assert settle_votes([Voter("hook", never, costly=True), voter("deny")], GIVEN).guard == "deny"
