"""Word documents as Word shows them: numbers, notes, fields, formulas; and nothing that is void."""

import re
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from activities.documents.document_reader import read_document
from activities.documents.pages import DocumentError
from tests.document_pages import read_document_pages

CASES = Path(__file__).parent / "cases"
MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'


def case(name: str) -> str:
    return "\n\n".join(page.text for page in read_document_pages(name, (CASES / name).read_bytes()))


def paragraphs(*bodies: str) -> bytes:
    """Return a document of paragraphs, each given by its content."""
    document = docx.Document()
    for body in bodies:
        document.element.body.insert(-1, parse_xml(f"<w:p {nsdecls('w')} {MATH}>{body}</w:p>"))
    saved = BytesIO()
    document.save(saved)
    return saved.getvalue()


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "docx-footnote.docx",
            "Records shall be kept for ten years.[1]\n\n"
            "[1] Records of minors must be kept for thirty years.",
        ),
        ("docx-main-part-named-document2.docx", "Records shall be kept for ten years."),
        (
            "docx-numbered.docx",
            "Article 1 Scope.\n\nArticle 2 Records shall be kept for ten years.\n\n"
            "Article 3 Exceptions to article 2 must be approved.",
        ),
        (
            "docx-strict-ooxml.docx",
            "\u2022 Bullet1\n\n\u2022 Bullet2\n\n1. Number1\n\n2. Number2\n\n"
            "Cellaa | Cellab\n\nCellba | Cellbb",
        ),
        ("docx-struck.docx", "Visitors must wear a badge."),
    ],
)
def test_reported_documents_are_read_as_word_shows_them(name, text):
    assert case(name) == text


def test_what_is_void_is_left_out_and_counted_by_passage():
    data = paragraphs(
        run("Kept for ") + run("fi", "<w:strike/>") + run("ve", "<w:dstrike/>") + run("ten years."),
        '<w:del w:id="1" w:author="a"><w:r><w:delText>Gone.</w:delText></w:r></w:del>'
        + '<w:ins w:id="2" w:author="a">'
        + run("New.")
        + "</w:ins>",
        run("Seen.") + run("Not seen.", "<w:vanish/>"),
        run("No longer struck.", '<w:strike w:val="0"/>'),
    )
    reading = read_document("a.docx", data)
    assert reading.pages[0].text == "Kept for ten years.\n\nNew.\n\nSeen.\n\nNo longer struck."
    assert reading.omitted_passages == {"struck": 1, "deleted": 1, "hidden": 1}
    assert reading.quality.warnings == [
        "1 struck passage is left out of the text.",
        "1 deleted passage is left out of the text.",
        "1 hidden passage is left out of the text.",
    ]
    assert not reading.quality.is_unreliable


def test_a_style_that_strikes_out_does_so():
    document = docx.Document()
    style = document.styles.add_style("Repealed", 1)
    style.font.strike = True
    document.add_paragraph("Old rule.", style="Repealed")
    document.add_paragraph("New rule.")
    saved = BytesIO()
    document.save(saved)
    assert read_document_pages("a.docx", saved.getvalue())[0].text == "New rule."


def test_headings_name_the_sections_of_a_page():
    document = docx.Document()
    document.add_heading("Scope", 1)
    document.add_paragraph("All of it.")
    document.add_heading("Terms", 2)
    document.add_page_break()
    document.add_paragraph("Here.")
    saved = BytesIO()
    document.save(saved)
    assert [page.sections for page in read_document_pages("a.docx", saved.getvalue())] == [
        ["Scope", "Terms"],
        ["Terms"],
    ]


def test_without_any_page_a_part_begins_at_each_heading():
    document = docx.Document()
    document.add_paragraph("Before.")
    document.add_heading("Scope", 1)
    document.add_heading("Terms", 2)
    document.add_paragraph("All of it.")
    document.add_heading("Rest", 2)
    saved = BytesIO()
    document.save(saved)
    assert [
        (page.text, page.sections) for page in read_document_pages("a.docx", saved.getvalue())
    ] == [
        ("Before.", []),
        ("Scope\n\nTerms\n\nAll of it.", ["Scope", "Terms"]),
        ("Rest", ["Rest"]),
    ]


def test_fields_symbols_and_boxes_are_there():
    box = '<w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox>{}</w:checkBox></w:ffData>'
    choice = (
        '<w:fldChar w:fldCharType="begin"><w:ffData><w:ddList><w:result w:val="1"/>'
        '<w:listEntry w:val="oolong"/><w:listEntry w:val="green"/></w:ddList></w:ffData>'
    )
    data = paragraphs(
        run("Amount ")
        + '<w:r><w:sym w:font="Symbol" w:char="F0A3"/></w:r>'
        + run(" 5 ")
        + '<w:r><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>',
        f"<w:r>{box.format('<w:checked/>')}</w:fldChar></w:r>"
        + run(" yes ")
        + f"<w:r>{box.format('')}</w:fldChar></w:r>"
        + run(" no"),
        f"<w:r>{choice}</w:fldChar></w:r>",
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>REF x</w:instrText></w:r>'
        '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
        + run("article 2")
        + '<w:r><w:fldChar w:fldCharType="end"/></w:r>',
    )
    assert read_document_pages("a.docx", data)[0].text == (
        "Amount \u2264 5 \u2713\n\n\u2612 yes \u2610 no\n\ngreen\n\narticle 2"
    )


def test_formulas_stand_in_the_line():
    def text(letters):
        return f"<m:r><m:t>{letters}</m:t></m:r>"

    power = f"<m:sSup><m:e>{text('x')}</m:e><m:sup>{text('2')}</m:sup></m:sSup>"
    fraction = f"<m:f><m:num>{text('a+b')}</m:num><m:den>{text('2')}</m:den></m:f>"
    root = f"<m:rad><m:deg/><m:e>{text('y')}</m:e></m:rad>"
    total = (
        '<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr>'
        f"<m:sub>{text('i=1')}</m:sub><m:sup>{text('n')}</m:sup><m:e>{text('i')}</m:e></m:nary>"
    )
    body = f"<m:oMath>{power}{text('=')}{fraction}{text('+')}{root}{text('+')}{total}</m:oMath>"
    data = paragraphs(run("Where ") + body + run(" holds."))
    assert (
        read_document_pages("a.docx", data)[0].text == "Where x^2=(a+b)/2+√(y)+∑_(i=1)^n i holds."
    )


def test_lists_count_by_level_start_anew_and_go_on():
    document = docx.Document()
    numbering = document.part.numbering_part.element
    levels = "".join(
        f'<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
        for level, (kind, text) in enumerate(
            [("decimal", "§ %1"), ("lowerLetter", "(%2)"), ("upperRoman", "%1.%2.%3.")]
        )
    )
    abstract = f'<w:abstractNum {nsdecls("w")} w:abstractNumId="77">{levels}</w:abstractNum>'
    numbering.insert(0, parse_xml(abstract))
    again = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="9"/></w:lvlOverride>'
    for key, override in (("70", ""), ("71", again)):
        num = (
            f'<w:num {nsdecls("w")} w:numId="{key}"><w:abstractNumId w:val="77"/>{override}</w:num>'
        )
        numbering.append(parse_xml(num))
    places = [
        ("70", 0),
        ("70", 1),
        ("70", 1),
        ("70", 2),
        ("70", 0),
        ("70", 1),
        ("70", 1),
        ("71", 0),
    ]
    for number, (key, level) in enumerate(places):
        paragraph = document.add_paragraph("Rule.")
        # A struck-out paragraph uses up its number.
        paragraph.runs[0].font.strike = number == 5
        properties = paragraph._p.get_or_add_pPr()
        place = (
            f'<w:numPr {nsdecls("w")}><w:ilvl w:val="{level}"/><w:numId w:val="{key}"/></w:numPr>'
        )
        properties.append(parse_xml(place))
    saved = BytesIO()
    document.save(saved)
    texts = read_document_pages("a.docx", saved.getvalue())[0].text.split("\n\n")
    assert [text.removesuffix(" Rule.") for text in texts] == [
        *("§ 1", "(a)", "(b)", "1.b.I.", "§ 2", "(b)", "§ 9")
    ]


def test_the_number_of_a_linked_note_stands_behind_its_sentence():
    link = f'<w:hyperlink w:anchor="note6">{run("6")}</w:hyperlink>'
    linked = paragraphs(run("It is so. ") + link + run(" Others"), run("In section ") + link)
    assert read_document_pages("a.docx", linked)[0].text == "It is so.6 Others\n\nIn section 6"


def test_notes_that_lead_to_each_other_have_an_end():
    with ZipFile(CASES / "docx-footnote.docx") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    notes = members["word/footnotes.xml"].decode()
    loop = re.sub(
        r"</w:p>(</w:footnote>)", r'<w:r><w:footnoteReference w:id="2"/></w:r></w:p>\1', notes
    )
    assert loop != notes
    looped = BytesIO()
    with ZipFile(looped, "w") as archive:
        for name, data in (members | {"word/footnotes.xml": loop.encode()}).items():
            archive.writestr(name, data)
    text = read_document_pages("a.docx", looped.getvalue())[0].text
    assert text.endswith("[1] Records of minors must be kept for thirty years.[2]")


def test_a_main_part_that_is_no_document_is_named():
    saved = BytesIO()
    docx.Document().save(saved)
    renamed = BytesIO()
    with ZipFile(saved) as good, ZipFile(renamed, "w") as other:
        for member in good.namelist():
            data = good.read(member)
            if member == "word/document.xml":
                data = data.replace(b"w:document", b"w:glossaryDocument")
            other.writestr(member, data)
    with pytest.raises(DocumentError, match=r"^a\.docx: not a Word document \(its main part"):
        read_document_pages("a.docx", renamed.getvalue())
