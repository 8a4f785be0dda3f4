"""What a reviewer's quote proves, in tables."""

import pytest

from activities.acceptance.reviewer_quotes import (
    NO_FINDING,
    NO_QUOTE,
    NOWHERE,
    OWN,
    QuotedWork,
    checked_verdict,
)
from activities.text.obligations import is_prohibition
from protocol.scope_ledger import Statement, Verdict

BRIEF = "Write output/tea.md. It must say how hot the water is. Do not mention coffee. Be brief."
WORK = [
    "# Tea\n\nHeat the water to 80 °C\nand let it rest for “two minutes” \u2013 no longer.",
    "-def brew():\n+def brew(grams):\n     return grams",
    "def brew():\ndef brew(grams):\n    return grams",
    "42\n",
]
EVIDENCE = "phase 2, todo 3: 2 calls; output/tea.md; pytest -q: exit code 0"
HOT = "It must say how hot the water is."


def judge(statement: str, verdict: Verdict, quote: str, finding: str = "") -> Statement:
    work = QuotedWork(WORK, ["a file that was not shown"], BRIEF)
    judged = Statement(text="", verdict=verdict, quote=quote, finding=finding)
    return checked_verdict(Statement(text=statement), EVIDENCE, work, judged)


@pytest.mark.parametrize(
    ("statement", "quote"),
    [
        (HOT, "Heat the water to 80 °C"),
        (HOT, "heat  THE water\nto 80 °c and let"),
        (HOT, '"let it rest for "two minutes" - no longer"'),
        (HOT, "Heat the water … no longer"),
        (HOT, "Heat the water [...] two minutes"),
        (HOT, "a file that was not shown"),
        ("The tests must pass.", "pytest -q: exit code 0"),
        ("brew() must take the grams.", "-def brew():\n+def brew(grams):"),
        ("brew() must take the grams.", "+def brew(grams):"),
        ("Remove brew without grams.", "def brew():"),
        ("Write the answer.", "42"),
        ("Write 'Heat the water to 80 °C' and when to stop into the page.", "Heat the water"),
        ("Do not mention coffee.", "Do not mention coffee."),
    ],
)
def test_a_quote_that_is_there_proves_met(statement: str, quote: str) -> None:
    assert judge(statement, "met", quote).verdict == "met"


@pytest.mark.parametrize(
    ("statement", "verdict", "quote", "why"),
    [
        (HOT, "met", "", NO_QUOTE),
        (HOT, "met", "   ", NO_QUOTE),
        (HOT, "met", "The water is at 80 degrees", NOWHERE),
        (HOT, "unmet", "The page says nothing", NOWHERE),
        (HOT, "met", "80", NOWHERE),
        (HOT, "met", "…", NOWHERE),
        (HOT, "met", "a … b … t", NOWHERE),
        (HOT, "met", "no longer … Heat the water", NOWHERE),
        (HOT, "met", HOT, OWN),
        (HOT, "met", "Do not mention coffee", OWN),
        (HOT, "met", "Be brief.", OWN),
        ("Write output/tea.md.", "met", "output/tea.md", OWN),
        ("Heat the water to 80 °C", "met", "heat the water to 80 °C", OWN),
        # A brief that forbids one thing proves nothing of another.
        ("Do not mention coffee.", "met", "It must say how hot the water is", OWN),
    ],
)
def test_a_quote_that_proves_nothing_leaves_it_open(
    statement: str, verdict: Verdict, quote: str, why: str
) -> None:
    judged = judge(statement, verdict, quote)
    assert judged.verdict == "cannot tell"
    assert judged.finding.startswith(why)
    assert not judged.quote


def test_what_is_not_there_may_be_shown_by_the_brief() -> None:
    judged = judge(HOT, "unmet", "how hot the water is", "no temperature")
    assert (judged.verdict, judged.finding) == ("unmet", "no temperature")
    assert judge(HOT, "unmet", "Heat the water").finding == NO_FINDING
    assert judge(HOT, "cannot tell", "anything").verdict == "cannot tell"


@pytest.mark.parametrize(
    ("text", "forbids"),
    [
        ("The page must not name prices.", True),
        ("Don’t touch data.csv.", True),  # noqa: RUF001
        ("Der Bericht darf keine Namen nennen.", True),
        ("Preise werden nicht genannt.", True),
        ("Il ne faut pas citer les prix.", True),
        ("Leave the file data.csv as it is.", True),
        ("Write a note on the knots.", False),
        ("Bis Mai muss der Bericht fertig sein.", False),
    ],
)
def test_prohibitions(text: str, forbids: bool) -> None:
    assert is_prohibition(text) is forbids


def test_other_texts_are_read_only_when_needed_and_once() -> None:
    read = []

    def others() -> object:
        for text in ("first text", "second text"):
            read.append(text)
            yield text

    work = QuotedWork(["shown text"], others(), "")  # type: ignore[arg-type]
    assert work.holds("shown text")
    assert not read
    assert work.holds("first text")
    assert work.holds("second text")
    assert not work.holds("third text")
    assert work.holds("first text")
    assert read == ["first text", "second text"]


ANSWER = "The page says that water of 80 degrees is hot enough."


@pytest.mark.parametrize(
    ("statement", "verdict"),
    [
        ("How hot must the water be?", "met"),
        ("Tell me how hot the water has to be.", "met"),
        ("Summarise what it says of the water.", "met"),
        ("Write how hot the water is.", "cannot tell"),
        ("Give each tea a page with its water.", "cannot tell"),
        ("Explain to readers in a section how hot the water is.", "cannot tell"),
        ("Make the water hot enough.", "cannot tell"),
    ],
)
def test_an_answer_shows_only_what_asks_for_an_answer(statement: str, verdict: Verdict) -> None:
    judged = Statement(text="", verdict="met", quote="water of 80 degrees is hot enough")
    work = QuotedWork([], (), BRIEF, ANSWER)
    assert checked_verdict(Statement(text=statement), EVIDENCE, work, judged).verdict == verdict
