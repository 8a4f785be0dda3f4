"""The text kept beside a document gives its pages back; quotes are found where they stand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.documents import (
    DocumentError,
    Page,
    contains_quote,
    page_of,
    pages_with_quote,
    parse,
    render,
)

awkward = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(["[page 3]", "\\[page 3]", "\\\\[page 12]", "", "\n", " ", "x", "\r", "\f"])
    ).map("\n".join),
)


@settings(deadline=None)
@given(st.lists(st.builds(Page, st.integers(min_value=0), awkward)))
def test_parse_undoes_render(pages):
    assert parse(render(pages)) == pages


def test_render_marks_each_page():
    text = render([Page(1, "first\n[page 9]"), Page(2, "second")])
    assert text == "[page 1]\nfirst\n\\[page 9]\n[page 2]\nsecond\n"


def test_text_without_marks_is_refused():
    with pytest.raises(DocumentError, match="no page marks"):
        parse("just words")


def test_page_that_is_not_there():
    pages = [Page(1, "a"), Page(2, "b")]
    assert page_of(pages, 2).text == "b"
    with pytest.raises(DocumentError, match="no page 3; the document's pages: 1 to 2"):
        page_of(pages, 3)


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
        ("die Ein- und Ausgangsrechnungen", "die Ein-und Ausgangsrechnungen"),
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
