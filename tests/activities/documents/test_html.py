"""HTML as a browser shows it, and texts in encodings that they declare or not."""

import time
from pathlib import Path

import pytest

from activities.documents.document_reader import read_document
from tests.document_pages import read_document_pages
from tests.soak import patient

CASES = Path(__file__).parent / "cases"


def text(body: str, head: str = "") -> str:
    data = f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode()
    return "\n\n".join(page.text for page in read_document_pages("a.html", data))


def test_struck_text_is_left_out_and_counted():
    reading = read_document("a.html", (CASES / "html-struck.html").read_bytes())
    assert reading.pages[0].text == "Records must be kept for ten years."
    assert reading.omitted_passages == {"struck": 2}
    assert reading.quality.warnings == ["2 struck passages are left out of the text."]


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ('<p style="text-decoration: line-through">Old.</p><p>New.</p>', "New."),
        ('<p class="old x">Old.</p><p class="olden">New.</p>', "New."),
        ('<p hidden>Not.</p><p style="display:none">Not.</p><p>Seen.</p>', "Seen."),
        ("<p>an e&shy;mail, a long&#x200b;name</p>", "an email, a longname"),
        ("<ol><li>A<li>B</ol>", "1. A\n\n2. B"),
        ('<ol type="a" start="3"><li>A<li value="9">B<li>C</ol>', "c. A\n\ni. B\n\nj. C"),
        ("<ol reversed><li>A<li>B</ol>", "2. A\n\n1. B"),
        ("<ul><li>A<li>B</ul>", "\u2022 A\n\n\u2022 B"),
        ("<ol><li>\n<p>A</p><p>B</p></li><li><p>C</p></ol>", "1. A\n\nB\n\n2. C"),
        ('It is so. <a href="#n6">6</a> Others', "It is so.6 Others"),
        ('<b>It is so.</b> <a href="#n6"><sup>6</sup></a> Others', "It is so.6 Others"),
        ('<b>section</b> <a href="#s6">6</a> says', "section 6 says"),
        ('It is so. <a href="/6">6</a> others', "It is so. 6 others"),
        ('Name: <input value="Alice"> <input type="hidden" value="x">.', "Name: Alice ."),
        ('<input type="checkbox" checked>yes <input type="checkbox">no', "[x] yes [ ] no"),
        ("<select><option>oolong<option selected>green</select> tea", "green tea"),
        (
            "If <math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac>"
            "<mo>≤</mo><msup><mi>x</mi><mn>2</mn></msup></math> then",
            "If (a+b)/2≤x^2 then",
        ),
    ],
)
def test_what_a_browser_shows_is_there_and_nothing_else(body, shown):
    assert text(body, "<style>p.old, b { text-decoration: line-through }</style>") == shown


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ("<tr><td>Paper<td>blue", "Paper | blue"),
        (
            "<tr>\n<td><p>Paper</p></td>\n<td>\n<div>blue</div>\n<p>bin</p></td>\n</tr>",
            "Paper | blue bin",
        ),
        ("<tr><td></td><th>Jan</th><td>Feb</td></tr>", "| Jan | Feb"),
        ("<tr><td>Fees<br>in all</td><td></td><td>4</td><td></td></tr>", "Fees in all |  | 4"),
        (
            "<tr><td rowspan=2>Kind<td colspan=2>Bin<tr><td>Colour<td>Rule<tr><td>A<td>b<td>c",
            "Kind | Bin\n\n| Colour | Rule\n\nA | b | c",
        ),
        ("<tr><td>A<td rowspan=2>B<td>C<tr><td>d<td>f", "A | B | C\n\nd |  | f"),
        ("<tr><td rowspan=2>A<td>b<tr><td>c", "A | b\n\n| c"),
        ("<tr><td>A<td><ul><li>b<li>c</ul>", "A |\n\n\u2022 b\n\n\u2022 c"),
        ("<tr><td><h1>A</h1><p>b</p><td><p>c</p>", "A\n\nb\n\nc"),
    ],
)
def test_a_table_row_is_a_line_with_its_cells_in_their_columns(rows, shown):
    assert text(f"<table>{rows}</table>") == shown


HIDDEN_CLASS = "<style>/* x */ .gone, p.off { display: none } .t { visibility: hidden }</style>"


def test_what_a_class_hides_is_left_out_and_counted():
    body = '<p class="x gone">A.</p><p class="off">B.</p><p class="t">C.</p><p>D.</p>'
    reading = read_document("a.html", f"<html>{HIDDEN_CLASS}<body>{body}</body></html>".encode())
    assert [page.text for page in reading.pages] == ["D."]
    assert reading.quality.warnings == ["3 hidden passages are left out of the text."]


@pytest.mark.parametrize(
    "shows",
    [
        "<script>let x</script>",
        "<style>.gone:target { display: block }</style>",
        "<style>.gone.open { visibility: visible; display: flex }</style>",
        "<style>@media (min-width: 40em) { .gone { display: block } }</style>",
    ],
)
def test_a_hidden_class_that_may_be_shown_is_in_the_text(shows):
    assert text('<p class="gone">A.</p>', HIDDEN_CLASS + shows) == "A."


def test_a_class_that_is_hidden_on_paper_alone_is_in_the_text():
    sheet = (
        "<style>@import 'a.css'; @media print { .gone { display: none } } p { margin: 0 }</style>"
    )
    assert text('<p class="gone">A.</p>', sheet) == "A."


def test_a_part_begins_at_each_heading_that_has_text_before_it():
    body = "<p>Before.</p><h1>1 Scope</h1><h2>1.1 All [of] it</h2><p>A.</p><h2>1.2 Rest</h2>B."
    pages = read_document_pages("a.html", f"<html><body>{body}</body></html>".encode())
    assert [(page.number, page.sections) for page in pages] == [
        (1, []),
        (2, ["1 Scope", "1.1 All (of) it"]),
        (3, ["1.2 Rest"]),
    ]
    assert pages[1].text == "1 Scope\n\n1.1 All [of] it\n\nA."


@pytest.mark.parametrize(
    ("label", "codec", "words"),
    [
        ("windows-1251", "cp1251", "Записи хранятся"),
        ("x-sjis", "cp932", "記録①は保存する"),
        ("ks_c_5601-1987", "cp949", "장부를 보존하여야 똠"),
        ("gb2312", "gb18030", "企业須保存帳簿"),
        ("latin1", "cp1252", "„müssen“ 5 €"),
        ("logical", "iso8859-8", "כל עוסק חייב"),
    ],
)
def test_labels_mean_what_they_mean_to_browsers(label, codec, words):
    page = f'<html><meta charset="{label}"><body>{words}</body></html>'.encode(codec)
    reading = read_document("a.html", page)
    assert reading.pages[0].text == words
    assert not reading.guessed_encoding


@pytest.mark.parametrize(
    ("name", "taken_for", "words"),
    [
        ("text-cp1250.txt", "windows-1250", "Każdy dział musi wyznaczyć osobę"),
        ("text-koi8-r.txt", "koi8-u", "Записи должны храниться десять лет."),
        ("text-shift-jis.txt", "shift_jis", "記録は十年間保存しなければならない。"),
        ("rss-windows-1251.xml", "", "Записи должны храниться десять лет"),
    ],
)
def test_a_guessed_encoding_is_named_and_a_declared_one_is_taken(name, taken_for, words):
    reading = read_document(name, (CASES / name).read_bytes())
    assert words in reading.pages[0].text
    assert reading.guessed_encoding == taken_for
    expected_warnings = [f"It declares no encoding; it was taken for {taken_for}, a guess."]
    assert reading.quality.warnings == (expected_warnings if taken_for else [])


def test_markdown_names_its_sections():
    [page] = read_document_pages("a.md", b"# Tea\n\n## Water ##\n\n    # code\n#no\n")
    assert page.sections == ["Tea", "Water"]


def test_many_items_take_no_longer_than_their_number():
    begun = time.process_time()
    [page] = read_document_pages("a.html", b"<html><body><ol>" + b"<li> <b> </b> item" * 50_000)
    assert page.text.endswith("50000. item")
    assert time.process_time() - begun < patient(10)


def test_xhtml_is_read_as_xml():
    declared = '<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE h:html>'
    body = "<h:h1>Rules</h:h1><h:script/><h:p>Keep&nbsp;it.</h:p><h:p>See it.</h:p>"
    data = (
        f'{declared}<h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:body>{body}</h:body></h:html>'
    )
    [page] = read_document_pages("a.xhtml", data.encode())
    assert (page.text, page.sections) == ("Rules\n\nKeep it.\n\nSee it.", ["Rules"])
    [page] = read_document_pages("a.xhtml", data.replace("</h:p>", "", 1).encode())
    assert "See it." in page.text, "what is not well formed is read as HTML"
