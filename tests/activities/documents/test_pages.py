"""The text kept beside a document gives its pages back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.documents import DocumentError, Page, page_of, parse, render

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
