"""Text with correct page numbers, from other people's documents.

The expected pages come from pdftotext, and for DOCX files from their own text.
"""

import time
from io import BytesIO
from zipfile import ZipFile

import docx
import pytest
from docx.enum.text import WD_BREAK
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from pypdf import PdfWriter
from pypdf.generic import DictionaryObject, NameObject, StreamObject

from activities.documents import document_reader
from activities.documents.document_reader import detect_document_kind
from activities.documents.pages import (
    DocumentError,
    find_page,
    name_unread_pages,
    parse_pages,
    render_pages,
)
from activities.documents.quotes import pages_with_quote
from tests.document_pages import read_document_pages
from tests.soak import patient

HYDRO = "pypdf-7.1.0/resources/GeoBase_NHNC1_Data_Model_UML_EN.pdf"
SIEGE = "pypdf-7.1.0/resources/Seige_of_Vicksburg_Sample_OCR-crazyones-merged.pdf"
ENCRYPTION = "pypdf-7.1.0/resources/encryption/"
DOCX = "python_docx-1.2.0/features/steps/test_files/"


@pytest.fixture(scope="module")
def manuals(real):
    return {path: read_document_pages("a.pdf", real(path)) for path in (HYDRO, SIEGE)}


@pytest.mark.parametrize(
    ("document", "count", "page", "sentence"),
    [
        (HYDRO, 19, 6, "The data model can (and must) extend beyond the smallest common "
         "denominator obtained with the partners."),
        (HYDRO, 19, 7, "The portion of toponymy associated to Hydro feature data is part of the "
         "National Toponymy Model."),
        (HYDRO, 19, 8, "relationships between classes belonging to different packages and the "
         "toponymy external package."),
        (SIEGE, 7, 1, "A report creeps into camp that Johnston is coming with fifty thousand men"),
        (SIEGE, 7, 5, "Why don't Grant move? If we had all those grumblers in Vicksburg"),
        (SIEGE, 7, 7, "Not a breeze stirred the foliage, except as fanned by the whirling shells."),
    ],
)  # fmt: skip
def test_sentence_of_a_pdf_is_on_the_page_pdftotext_finds_it_on(
    manuals, document, count, page, sentence
):
    pages = manuals[document]
    assert [pdf_page.number for pdf_page in pages] == list(range(1, count + 1))
    assert pages_with_quote(pages, sentence) == [page]


def test_docx_that_names_its_own_pages(real):
    pages = read_document_pages("a.docx", real(DOCX + "sct-first-page-hdrftr.docx"))
    assert [page.text for page in pages] == [
        "First page.",
        "Second (even) page.",
        "Third (odd) page.",
        "Page 4, First Page of second section.",
        "",
        "Page 6, Third page of section 2.",
    ]


def test_docx_with_traces_of_its_last_layout(real):
    pages = read_document_pages("a.docx", real(DOCX + "par-rendered-page-breaks.docx"))
    assert [page.text for page in pages] == [
        "No page breaks\n\nPage break here>>",
        "<<followed by more text.\n\nPage break in>>",
        "<<this hyperlink and another one here>>",
        "<<with text following\n\nTwo page>>",
        "<<breaks>>",
        "<<in one run.",
    ]


def test_docx_tables_stand_between_their_paragraphs(real):
    pages = read_document_pages("a.docx", real(DOCX + "sct-inner-content.docx"))
    assert [page.text.split() for page in pages] == [
        ["P1", "T2", "P3"],
        ["T4", "P5", "P6"],
        ["P7", "P8", "P9"],
    ]


def test_docx_breaks_that_stand_together_make_one_page():
    document = docx.Document()
    document.add_paragraph("one")
    document.add_paragraph().add_run().add_break(WD_BREAK.PAGE)
    heading = document.add_paragraph("two")
    heading.paragraph_format.page_break_before = True
    heading.runs[0]._r.insert(0, parse_xml(f"<w:lastRenderedPageBreak {nsdecls('w')}/>"))
    document.add_section()
    document.add_paragraph("three").paragraph_format.page_break_before = True
    styled = document.styles.add_style("Chapter", 1)
    styled.paragraph_format.page_break_before = True
    document.add_paragraph("four", style="Chapter")
    saved = BytesIO()
    document.save(saved)
    texts = [page.text for page in read_document_pages("a.docx", saved.getvalue())]
    assert texts == ["one", "two", "three", "four"]


def test_docx_row_cut_by_a_page_end_counts_once():
    document = docx.Document()
    trace = f"<w:lastRenderedPageBreak {nsdecls('w')}/>"
    row = document.add_table(rows=1, cols=2).rows[0]
    for cell in row.cells:
        paragraph = cell.paragraphs[0]
        paragraph.add_run("upper")
        paragraph.add_run(" lower")._r.insert(0, parse_xml(trace))
    document.add_paragraph("after")
    saved = BytesIO()
    document.save(saved)
    first, second = read_document_pages("a.docx", saved.getvalue())
    assert first.text == "upper lower | upper lower"
    assert second.text == "after"


def test_html_manual_without_scripts_and_navigation(real):
    pages = read_document_pages("usage.html", real("mako-1.4.3/doc/usage.html"))
    quote = "The most basic way to create a template and render it is through the Template class:"
    [number] = pages_with_quote(pages, quote)
    # One part for each heading, with the heading in its mark.
    assert pages[number - 1].sections[-1] == "Basic Usage"
    assert [page.number for page in pages] == list(range(1, len(pages) + 1))
    text = "".join(page.text for page in pages)
    assert "mytemplate = Template(" in text
    assert "text/javascript" not in text
    assert "DOCUMENTATION_OPTIONS" not in text


PAGE = "<p>„Belege“ müssen, so § 147, bleiben; 5 €.</p>"


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("", "cp1252"),
        ('<meta charset="iso-8859-1">', "cp1252"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=us-ascii">', "cp1252"),
        ('<meta charset="none-such">', "cp1252"),
        ('<meta charset="hex">', "cp1252"),
        ('<meta charset="utf-16">', "cp1252"),
        ('<meta charset="iso-8859-1">', "utf-8"),
        ("", "utf-16"),
        ("", "utf-16-le"),
    ],
)
def test_html_is_read_in_the_encoding_a_browser_reads_it_in(head, encoding):
    data = f"<html><head>{head}</head><body>{PAGE}</body></html>".encode(encoding)
    assert read_document_pages("a.html", data)[0].text == PAGE[3:-4]


def test_html_with_a_bad_byte_is_utf_8_all_the_same():
    data = f"<html><body>{PAGE}</body></html>".encode().replace(b"5 ", b"\xff ")
    assert read_document_pages("a.html", data)[0].text == PAGE[3:-4].replace("5", "\ufffd")


def test_html_in_seven_bits_is_not_taken_for_utf_8():
    page = '<html><head><meta charset="iso-2022-jp"></head><body>帳簿を十年</body></html>'
    assert read_document_pages("a.html", page.encode("iso-2022-jp"))[0].text == "帳簿を十年"


@pytest.mark.parametrize("encoding", ["utf-7", "unicode_escape"])
def test_an_encoding_that_can_say_what_no_file_takes_is_read(encoding):
    data = (
        f'<html><meta charset="{encoding}"><body>+2AA- \\ud800 '.encode()
        + b"\xe4 tea</body></html>"
    )
    assert read_document_pages("a.html", data)[0].text.endswith(" tea")


def test_xhtml_says_its_encoding_in_its_first_line():
    data = '<?xml version="1.0" encoding="ISO-8859-15"?><html><body>müssen 5 €</body></html>'
    assert read_document_pages("a.xhtml", data.encode("iso-8859-15"))[0].text == "müssen 5 €"


def test_html_whose_tags_are_never_closed_is_read_to_its_end_or_not_at_all():
    data = b"<html><body>" + b"<font>word " * 1500 + b"the last</body></html>"
    assert read_document_pages("a.html", data)[0].text.endswith("word the last")
    with pytest.raises(DocumentError, match="too deep"):
        read_document_pages("a.html", data.replace(b"word", b"<font>" * 10))


def test_html_note_numbers_are_no_digits_of_the_number_before():
    data = b"<p>kept <b>30</b><sup>1</sup> days from the 1<sup>st</sup> on<sup>2</sup></p>"
    assert read_document_pages("a.html", data)[0].text == "kept 30^1 days from the 1st on2"


def test_html_table_and_dropped_parts():
    html = b"""<!doctype html><title>t</title><nav>menu</nav><script>x()</script><style>p{}</style>
    <p>One&nbsp;<b>bold</b> word.</p><table><tr><th>A<td>B<tr><td>C<td>D</table>caf\xc3\xa9"""
    assert read_document_pages("no-extension", html)[0].text == (
        "One bold word.\n\nA | B\n\nC | D\n\ncafé"
    )


def test_what_comes_before_the_first_element_of_html_is_passed_over():
    before = b"\xef\xbb\xbf\n<?xml version='1.0'?>\n<!-- a > b --> <!---->\n"
    assert detect_document_kind("no-extension", before + b"<HTML lang=en>") == "html"
    assert detect_document_kind("no-extension", before + b"<htmlish>") == "text"


@pytest.mark.parametrize("start", [b"<!---->", b"<?xml?>", b"<!-- -->\n"])
def test_no_beginning_of_a_file_takes_long_to_look_at(start):
    begun = time.process_time()
    assert detect_document_kind("no-extension", start * 26 + b"x") == "text"
    assert time.process_time() - begun < patient(1)


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        ("one\n\ftwo\f\fvier ä".encode(), ["one", "two", "", "vier ä"]),
        (b"\xef\xbb\xbfmarked", ["marked"]),
        ("Fälschung \u201eneu\u201c".encode("cp1252"), ["Fälschung \u201eneu\u201c"]),
        ("zwei Byte".encode("utf-16"), ["zwei Byte"]),
        ("zwei Byte\f\u0100 ä €".encode("utf-16-le"), ["zwei Byte", "\u0100 ä €"]),
        ("帳簿、10年保存。".encode("utf-16-be"), ["帳簿、10年保存。"]),
        ("Größe müß".encode()[:-1], ["Größe mü\ufffd"]),
        ("Ärger, ÄÖÜß".encode("cp1252"), ["Ärger, ÄÖÜß"]),
        (b"a\r\nb\rc", ["a\nb\nc"]),
    ],
)
def test_plain_text_pages_and_encodings(data, texts):
    assert [page.text for page in read_document_pages("notes.txt", data)] == texts


def test_content_goes_before_extension(real):
    assert len(read_document_pages("wrong.txt", real(HYDRO))) == 19
    assert (
        read_document_pages("wrong.pdf", real(DOCX + "doc-add-section.docx"))[2].text
        == "Third page"
    )


def test_pdf_that_opens_without_a_password(real):
    [page] = read_document_pages("a.pdf", real(ENCRYPTION + "r3-empty-password.pdf"))
    assert page.text


@pytest.mark.parametrize("name", ["r2-user-password.pdf", "r6-both-passwords.pdf"])
def test_encrypted_pdf(real, name):
    with pytest.raises(DocumentError, match=r"^a\.pdf: the PDF is encrypted; .*password$"):
        read_document_pages("a.pdf", real(ENCRYPTION + name))


def test_scan_without_text(real):
    with pytest.raises(DocumentError, match=r"^scan\.pdf: no text in it: a scan, .*OCR"):
        read_document_pages("scan.pdf", real("pypdf-7.1.0/resources/git.pdf"))


def _zip(member: str, data: bytes) -> bytes:
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        archive.writestr(member, data)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.pdf", b"", "no text in it"),
        ("a.pdf", b"  \n", "no text in it"),
        ("a.md", b"\f\n\f", "no text in it"),
        ("a.html", b" ", "no text in it"),
        ("a.html", b"<html><script>fill()</script><div id=root></div>", "scripts in a browser"),
        ("a.pdf", b"%PDF-1.7\nhalf of a file", "broken"),
        ("a.pdf", b"plain words", "broken"),
        ("a.docx", b"PK\x03\x04 half of a file", "broken"),
        ("a.docx", _zip("word/document.xml", b"<broken"), "broken"),
        ("a.xlsx", _zip("xl/workbook.xml", b"<a/>"), "an Excel workbook: save its sheets as .csv"),
        ("a.pptx", _zip("ppt/presentation.xml", b"<a/>"), "a PowerPoint file"),
        ("a.epub", _zip("META-INF/container.xml", b"<a/>"), "an EPUB book"),
        ("a.odt", _zip("content.xml", b"<a/>"), "an OpenDocument file"),
        ("a.zip", _zip("a.txt", b"a"), "a ZIP archive, not a Word document: unpack it first"),
        ("a.bin", b"\x00\x01\x02", "unknown type"),
        ("a.bin", b"\x00\x01\x00\x41" * 9, "unknown type"),
        ("a.bin", b"a\x00b", "unknown type"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1", "save it as unprotected .docx"),
        ("a.rtf", b"{\\rtf1 x}", "RTF"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(name, data, reason):
    with pytest.raises(DocumentError) as raised:
        read_document_pages(name, data)
    message = str(raised.value)
    assert message.startswith(f"{name}: ")
    assert reason in message
    assert "\n" not in message


def test_a_fault_of_a_reader_is_not_called_one_of_the_file(monkeypatch):
    monkeypatch.delattr(document_reader, "_run_reader")
    with pytest.raises(DocumentError, match=r"^a\.md: it cannot be read \(NameError: .*a fault"):
        read_document_pages("a.md", b"# A")


def test_every_truncation_of_a_pdf_is_a_document_error_or_pages(real):
    data = real(SIEGE)
    for size in range(1, len(data), len(data) // 5):
        try:
            assert read_document_pages("a.pdf", data[:size])
        except DocumentError as error:
            assert "\n" not in str(error)


def _pdf(*filters: str) -> bytes:
    """Return a PDF with one page for each entry: its words, or bytes that claim to be compressed
    words.
    """
    writer = PdfWriter()
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    fonts = DictionaryObject({NameObject("/F"): _names(font)})
    for packed in filters:
        page = writer.add_blank_page(200, 200)
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = StreamObject()
        stream.set_data(b"not packed so" if packed else b"BT /F 9 Tf (Kept ten years.) Tj ET")
        stream.update(_names({"/Filter": packed} if packed else {}))
        page[NameObject("/Contents")] = writer._add_object(stream)
    saved = BytesIO()
    writer.write(saved)
    return saved.getvalue()


def _names(names: dict[str, str]) -> DictionaryObject:
    return DictionaryObject({NameObject(key): NameObject(name) for key, name in names.items()})


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        ("/NoSuch", "Unsupported filter /NoSuch"),
        ("/FlateDecode", "Error -3 while decompressing data: incorrect header check"),
    ],
)
def test_page_of_a_pdf_that_cannot_be_read_leaves_the_others_and_their_numbers(packed, why):
    pages = read_document_pages("a.pdf", _pdf("", packed, ""))
    assert [page.text for page in pages] == [
        "Kept ten years.",
        f"(This page could not be read: {why})",
        "Kept ten years.",
    ]
    assert name_unread_pages(parse_pages(render_pages(pages))) == " Could not be read: page 2."
    with pytest.raises(DocumentError, match="page 2 could not be read"):
        find_page(pages, 2)
    with pytest.raises(DocumentError):
        read_document_pages("a.pdf", _pdf(packed))
