"""Quotes are found where they stand, whatever the layout."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.documents.pages import Page
from activities.documents.quotes import (
    FoldedPage,
    contains_quote,
    find_quoted_passage,
    nearest_quoted_passage,
    pages_with_quote,
)


@pytest.mark.parametrize(
    ("page", "quote"),
    [
        ("Records must be\n  kept for ten years.", "must be kept for\tten years"),
        ("the reten-\ntion period of invoices", "the retention period of invoices"),
        ("a well-\nknown and tested way", "a well-known and tested way"),
        ("a well-\nknown re-\ntention period", "a well-known retention period"),
        ("a well-known way of working", "a well-\nknown way of working"),
        ("the reten\u00ad\ntion pe\u00adriod of all", "the retention period of all"),
        ("the \ufb01rst of\ufb01ce that \ufb02oods", "the first office that floods"),
        ("\u201eSo ist es\u201c, sagte er \u2013 leise", '"So ist es", sagte er - leise'),
        ("the company\u2019s own archive\u00a0room", "the company's own archive room"),
        ("see provider1 of the service", "see provider1 of the service"),
        ("The storage provider1 shall act.", "The storage provider"),
        (
            "die Buchführungs-\nund Aufzeichnungspflichten",
            "Buchführungs- und Aufzeichnungspflichten",
        ),
        ("die Ein- und Ausgangsrechnungen", "die Ein-\nund Ausgangsrechnungen"),
        ("Cross\u2011\nsectional imaging is due", "Cross\u2011 sectional imaging is due"),
        ("short", "short"),
        ("Invoices\n  10 years \nLetters", "10 years"),
        ("Invoices | 10 years | § 147", "10 years"),
        ("of the whole term\n“Due: 5 May”", '"Due: 5 May"'),
        ("記録は十年間保存しなければならないと定める。", "十年間保存しなければならない"),
        ("发票必须、\n并且应当在 30\n天内交给税务机关。", "发票必须、并且应当在30天内交给税务机关"),
        ("kept for 10\u00b2 years in the archive", "kept for 10\u00b2 years in the archive"),
        ("die Ein- und Ausgangsrechnungen", "die Ein-und Ausgangsrechnungen"),
        ("Everypackagemusthaveaname.", "Every package must have a name."),
        ("Every package must have a n a m e.", "Every package must have a name."),
        ("as the script.4\n2 There are some reasons", "2 There are some reasons"),
        ("a rule \u2013 not a wish - holds", "a rule\u2014not a wish \u2014 holds"),
        ("the caf\u00e9 is to be closed", "the cafe\u0301 is to be closed"),
        ("the cafe\u0301 is to be closed", "the caf\u00e9 is to be closed"),
    ],
)
def test_layout_does_not_matter(page, quote):
    assert contains_quote(page, quote)


@pytest.mark.parametrize(
    ("page", "quote"),
    [
        ("Records must be kept for ten years.", "records must be kept for ten years."),
        ("Records must be kept for ten years.", "Records must be kept for six years."),
        ("Records must be kept for ten years.", "Records must kept for ten years."),
        ("They are unable to read the records.", "able to read the records"),
        ("kept for 100 years in the archive", "00 years in the archive"),
        ("A fee of 1,500 EUR is due.", "500 EUR is due."),
        ("They are kept for 10.5 years.", "They are kept for 10"),
        ("kept for 10\u00b2 years in the archive", "kept for 102 years"),
        ("as in rule 1 2 of them have gone", "as in rule 12 of them have gone"),
        ("at least -5 degrees and at most 3", "at least 5 degrees and at most 3"),
        ("close the cafe\u0301", "close the caf e"),
        ("die Einund Ausgangsrechnungen", "die Ein- und Ausgangsrechnungen"),
        ("please re-sign the whole contract", "please resign the whole contract"),
        ("please resign the whole contract", "please re-sign the whole contract"),
        ("Records must be kept.", "must"),
        ("Invoices | kept 10 years | § 147", "10 years"),
        ("Invoices are kept\nfor 10 years", "10 years"),
        ("Records must be kept.", ""),
        ("", ""),
        ("", "Records must be kept."),
    ],
)
def test_words_do(page, quote):
    assert not contains_quote(page, quote)


@settings(deadline=None)
@given(st.text(min_size=12))
def test_page_contains_itself(text):
    assert contains_quote(text, text) or not text.strip()


def test_all_pages_of_a_quote():
    pages = [Page(1, "nothing"), Page(2, "It shall be\nso."), Page(4, "and: It shall be so.")]
    assert pages_with_quote(pages, "It shall be so.") == [2, 4]


def test_hostile_page_is_no_slower_than_its_size_allows():
    assert not contains_quote("a-" * 20_000, "a-" * 60 + "b")
    assert not contains_quote("a" + " " * 100_000 + "b", "a c")


@pytest.mark.parametrize(
    ("page", "quote", "passage"),
    [
        (
            "1.2 Keeping\nRecords must be\n  kept for the re-\ntention period.3 And then",
            "Records must be kept for the retention period.",
            "Records must be kept for the retention period.",
        ),
        (
            "It says \u201cthe \ufb01rst of\ufb01ce\u201d.",
            '"the first office"',
            "\u201cthe \ufb01rst of\ufb01ce\u201d",
        ),
        ("Everycasehasaname.", "Every case has a name.", "Everycasehasaname."),
        ("it is in the cafe\u0301 of the house", "is in the caf\u00e9", "is in the cafe\u0301"),
        ("Invoices | 10 years | \u00a7 147", "10  years", "10 years"),
    ],
)  # fmt: skip
def test_what_is_recorded_is_the_passage_of_the_page(page, quote, passage):
    assert find_quoted_passage(page, quote) == passage
    # The passage found is found again when it is quoted itself.
    assert find_quoted_passage(page, passage) == passage


def test_the_nearest_passage_is_shown_with_its_page():
    pages = [
        Page(1, "The log must be kept for five years. Nobody may alter it."),
        Page(2, "Invoices must be archived for\nten years, in a form that cannot be altered."),
    ]
    near = nearest_quoted_passage(pages, "Invoices must be archived for twelve years, in a form")
    assert near == (2, "Invoices must be archived for ten years, in a form")
    assert nearest_quoted_passage(pages, "Payments need two signatures of the board.") is None
    assert nearest_quoted_passage(pages, "...") is None
    assert nearest_quoted_passage([], "Invoices must be archived") is None


def test_a_document_of_one_long_line_fills_no_memory():
    line = "The package must have a name and it should be short, " * 3_500
    text = f"{line}and nobody may ever rename it afterwards, {line}"
    quote = "and nobody could ever rename it afterwards"
    tracemalloc.start()
    try:
        assert FoldedPage(text).find_passage(quote) is None
        page, passage = nearest_quoted_passage([Page(1, text)], quote) or (0, "")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (page, "nobody may ever rename" in passage) == (1, True)
    assert peak < 25 * len(text)


def test_passages_touch_where_they_share_more_than_a_word():
    page = FoldedPage("Records must be kept for ten years. They must not be altered.")
    [first] = page.find_spans("Records must be kept for ten years.")
    [part] = page.find_spans("be kept for ten years. They must not be")
    [second] = page.find_spans("They must not be altered.")
    assert first.touches(part)
    assert part.touches(second)
    assert not first.touches(second)
    assert page.find_spans("must be altered") == []
