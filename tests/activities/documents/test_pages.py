"""The text kept beside a document gives its pages back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.documents.pages import DocumentError, Page, find_page, parse_pages, render_pages
from tests.document_pages import section_on_page

awkward = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(["[page 3]", "\\[page 3]", "\\\\[page 12]", "", "\n", " ", "x", "\r", "\f"])
    ).map("\n".join),
)


@settings(deadline=None)
@given(st.lists(st.builds(Page, st.integers(min_value=0), awkward)))
def test_parse_undoes_render(pages):
    assert parse_pages(render_pages(pages)) == pages


def test_render_marks_each_page():
    text = render_pages([Page(1, "first\n[page 9]"), Page(2, "second")])
    assert text == "[page 1]\nfirst\n\\[page 9]\n[page 2]\nsecond\n"


def test_text_without_marks_is_refused():
    with pytest.raises(DocumentError, match="no page marks"):
        parse_pages("just words")


def test_page_that_is_not_there():
    pages = [Page(1, "a"), Page(2, "b")]
    assert find_page(pages, 2).text == "b"
    with pytest.raises(DocumentError, match="no page 3; the document's pages: 1 to 2"):
        find_page(pages, 3)


def test_a_mark_says_what_is_printed_on_the_page_and_which_sections_are_on_it():
    pages = [
        Page(1, "Preface", label="iv"),
        Page(2, "1 Scope\nAll.\n1.1 Terms\nSome.", sections=["1 Scope", "1.1 Terms"]),
        Page(3, "[page 2; label x; section y]\n[page 2; other]"),
    ]
    text = render_pages(pages)
    assert text.startswith(
        "[page 1; label iv]\nPreface\n[page 2; section 1 Scope; section 1.1 Terms]"
    )
    assert "\n\\[page 2; label x; section y]\n[page 2; other]\n" in text
    assert parse_pages(text) == pages


def test_the_section_of_a_place_is_the_last_whose_heading_stands_before_it():
    text = "goes on\n2  Terms\nSome.\n# 2.1 More\nmore"
    page = Page(4, text, sections=["1 Scope", "2 Terms", "2.1 More"])
    assert section_on_page(page, 0) == "1 Scope"
    assert section_on_page(page, text.index("Some")) == "2 Terms"
    assert section_on_page(page, len(text) - 1) == "2.1 More"
    assert section_on_page(Page(1, text), 3) == ""
    assert section_on_page(Page(1, "before\n1 Scope\nAll.", sections=["1 Scope"]), 0) == ""


def test_sections_that_a_mark_has_no_room_for_are_claimed_by_none():
    titles = [f"{number} Part" for number in range(1, 15)]
    text = "\n".join(f"{title}\nRule." for title in titles)
    [page] = parse_pages(render_pages([Page(1, text, sections=titles)]))
    assert page.sections == [*titles[:12], "…"]
    assert section_on_page(page, text.index("11 Part")) == "11 Part"
    assert section_on_page(page, len(text) - 1) == ""
