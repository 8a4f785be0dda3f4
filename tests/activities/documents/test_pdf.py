"""PDFs as their readers see them: real ones, and small ones made to show one thing."""

import gzip
import re
import shutil
import subprocess
from collections import Counter
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw
from pypdf import PdfReader, PdfWriter, Transformation
from pypdf.annotations import Text
from pypdf.constants import AnnotationFlag, PageLabelStyle
from pypdf.generic import (
    ArrayObject,
    DecodedStreamObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    RectangleObject,
    StreamObject,
)

from activities.documents.bounded_reader import read_document_bounded
from activities.documents.document_reader import read_document
from activities.documents.pages import DocumentError, Page
from activities.documents.pdf_lines import (
    Box,
    Line,
    join_raised_number_lines,
    separate_pdf_paragraphs,
)
from activities.requirements.text.candidate_sentences import identify_candidates
from tests.conftest import Real
from tests.document_pages import extract_bounded, read_document_pages, section_on_page
from tests.soak import soak

RESOURCES = "pypdf-7.1.0/resources/"
SCAN = RESOURCES + "imagemagick-CCITTFaxDecode.pdf"
CASES = Path(__file__).parent / "cases"
FETCHED = Path(__file__).parents[2] / ".fetched"


def made(*pages: list[str]) -> PdfWriter:
    """Return a PDF with these lines on its pages, in Helvetica."""
    writer = PdfWriter()
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    font = DictionaryObject({NameObject(key): NameObject(name) for key, name in font.items()})
    for lines in pages:
        page = writer.add_blank_page(300, 200)
        fonts = DictionaryObject({NameObject("/F"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        shown = " ".join(f"({line}) Tj 0 -12 Td" for line in lines)
        stream.set_data(f"BT /F 10 Tf 20 180 Td {shown} ET".encode("latin-1"))
        page[NameObject("/Contents")] = writer._add_object(stream)
    return writer


def saved(writer: PdfWriter) -> bytes:
    data = BytesIO()
    writer.write(data)
    return data.getvalue()


def test_words_are_apart_where_no_letter_says_so():
    [page] = read_document_pages("a.pdf", (CASES / "xelatex-no-space-glyph.pdf").read_bytes())
    assert "The author felt limitations of updating the original" in page.text


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("libreoffice-form.pdf", ["Alice", "Bob"]),
        ("form_evince.pdf", ["bar"]),
        ("form_acrobatReader.pdf", ["Bar"]),
        ("FormTestFromOo.pdf", ["Lst1", "Lst4"]),
    ],
)
def test_values_of_form_fields_are_there(real: Real, document, words):
    [page] = read_document_pages("a.pdf", real(RESOURCES + document))
    assert set(words) <= set(page.text.split())


def test_notes_on_a_page_are_there(real: Real):
    [page] = read_document_pages("a.pdf", real(RESOURCES + "commented.pdf"))
    assert page.text.endswith(
        '[Note: note over "kinds"\n\nLike in "kinds of people"\n\n----------\n\nUmlaut: äöüß]'
    )
    assert "[Note: Note in second paragraph]" in page.text


def test_outline_gives_sections_with_the_numbers_of_the_page(real: Real):
    pages = read_document_pages("a.pdf", real(RESOURCES + "pdflatex-outline.pdf"))
    assert [page.sections for page in pages] == [
        [],
        ["1 Foo", "2 Bar", "3 Baz", "4 Foo"],
        ["4 Foo", "5 Bar", "6 Baz", "7 Foo"],
        ["7 Foo", "8 Bar", "9 Baz"],
    ]
    start = pages[1].text.index("2 Bar")
    assert section_on_page(pages[1], start - 1) == "1 Foo"
    assert section_on_page(pages[1], start + 10) == "2 Bar"
    assert section_on_page(pages[2], 0) == "4 Foo"


def test_printed_page_labels_are_kept():
    writer = made(["Preface."], ["Contents."], ["One."])
    writer.set_page_label(0, 1, PageLabelStyle.LOWERCASE_ROMAN)
    writer.set_page_label(2, 2, PageLabelStyle.DECIMAL)
    assert [page.label for page in read_document_pages("a.pdf", saved(writer))] == ["i", "ii", "1"]


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["A require-", "ment is kept."], "A requirement\nis kept."),
        # A word split at a line end is joined as the document writes it elsewhere.
        (["Long-term plans and long-", "term work."], "Long-term plans and long-term\nwork."),
        (["Input und Ein-", "und Ausgang."], "Input und Ein-\nund Ausgang."),
        (["The Debian-", "Policy applies."], "The Debian-Policy\napplies."),
        (["Use case and use case in a use-", "case."], "Use case and use case in a use-case."),
        # A name with dots that occurs elsewhere in the document.
        (
            ["Run invoke-rc.d, or invoke-rc.", "d by hand."],
            "Run invoke-rc.d, or invoke-rc.d\nby hand.",
        ),
        (
            ["See point c.d and point c.", "There it ends."],
            "See point c.d and point c.\nThere it ends.",
        ),
    ],
)
def test_words_divided_at_line_ends_are_joined(lines, text):
    assert read_document_pages("a.pdf", saved(made(lines)))[0].text == text


def test_raised_numbers_stand_where_their_notes_are_marked():
    lines = [
        Line("It must be removed (and any backup files)", Box(72, 532, 178, 188)),
        Line("16", Box(532, 539, 182, 189)),
        Line("by the clean target of version 2", Box(72, 540, 166, 176)),
        Line("7", Box(540, 544, 170, 177)),
        Line("4", Box(82, 85, 98, 104)),
        Line("It is customary to do so.", Box(88, 361, 95, 103)),
        Line("The mode is 600 or user:mail.", Box(72, 480, 60, 70)),
        Line("4 Others may be chosen.", Box(480.5, 540, 60, 70)),
        Line("103", Box(523, 540, 40, 50)),
    ]
    assert [line.text for line in join_raised_number_lines(lines)] == [
        "It must be removed (and any backup files)16",
        "by the clean target of version 2^7",
        "4 It is customary to do so.",
        "The mode is 600 or user:mail.4 Others may be chosen.",
        "103",
    ]


def test_paragraphs_are_apart_where_lines_are():
    lines = ["One goes on", "here.", "", "", "Two."]
    assert read_document_pages("a.pdf", saved(made(lines)))[0].text == "One goes on\nhere.\n\nTwo."


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        pytest.param(
            [
                "Every field of a control file has rules of its own:",
                "",
                "Source",
                "        The name of the source must be in each of the files",
                "        that are built from it.",
                "Section",
                "        It should be left out.",
            ],
            "Every field of a control file has rules of its own:\n\nSource\n\n"
            "The name of the source must be in each of the files\nthat are built from it.\n\n"
            "Section\n\nIt should be left out.",
            id="terms and what explains them",
        ),
        pytest.param(
            ["1. The log must be kept in the archive for as long as", "    the law demands it."],
            "1. The log must be kept in the archive for as long as\nthe law demands it.",
            id="an item that goes on below its first word",
        ),
        pytest.param(
            [
                *("Doors must be locked", "", "Windows must be shut", "", "Lamps must be out", ""),
                *("The porter must see to it, each night and on", "Sundays.", "", "Dogs may stay"),
            ],
            "Doors must be locked\n\nWindows must be shut\n\nLamps must be out\n\n"
            "The porter must see to it, each night and on\nSundays.\n\nDogs may stay",
            id="mostly paragraphs of one line",
        ),
    ],
)
def test_paragraphs_terms_and_items_are_apart(lines, text):
    assert read_document_pages("a.pdf", saved(made(lines)))[0].text == text


def test_a_line_of_a_narrow_column_goes_on_beside_a_wide_one():
    narrow = [
        Line("\u2022 The record must be in", Box(40, 140, 180, 190)),
        Line("the archive.", Box(50, 105, 168, 178)),
    ]
    wide = [Line("It is said here at greater length what", Box(160, 400, 180, 190))]
    assert "" not in separate_pdf_paragraphs([*narrow, *wide])[:2]


def test_text_that_a_mark_strikes_out_is_left_out_and_counted():
    writer = made(["Kept for five ten years."])
    width = 20 + 10 * (0.667 + 0.5 + 0.556 + 0.278 + 0.278 + 0.278 + 0.556 + 0.333 + 0.278)
    left, right = width, width + 20
    corners = [left, 190, right, 190, left, 176, right, 176]
    mark = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Annot"),
            NameObject("/Subtype"): NameObject("/StrikeOut"),
            NameObject("/Rect"): ArrayObject(map(FloatObject, (left, 176, right, 190))),
            NameObject("/QuadPoints"): ArrayObject(map(FloatObject, corners)),
        }
    )
    writer.pages[0][NameObject("/Annots")] = ArrayObject([writer._add_object(mark)])
    reading = read_document("a.pdf", saved(writer))
    assert reading.pages[0].text == "Kept for ten years."
    assert reading.omitted_passages == {"struck": 1}
    assert reading.quality.warnings == ["1 struck passage is left out of the text."]


def test_text_that_lines_strike_out_in_a_guideline_is_left_out(real: Real):
    writer = PdfWriter()
    # All that is struck is on the first pages; on the others no line strikes anything out.
    for page in PdfReader(BytesIO(real(RESOURCES + "issue-604.pdf"))).pages[: soak(8, 137)]:
        writer.add_page(page)
    reading = read_document("a.pdf", saved(writer))
    text = " ".join(reading.pages[3].text.split())
    assert "Nodule surveillance as recommended by the ATA or TI-RADS " in text
    assert "If nodule growth" not in text
    assert '"...BRAF, NTRK, ALK, RET, and tumor mutational burden."' in text
    assert reading.omitted_passages == {"struck": 25}
    assert not reading.quality.is_unreliable


@pytest.mark.parametrize(
    ("line", "text"),
    [
        # Lines through the words, below them, above them, and beside them.
        ("20 183 40 0.8 re f", "for ten years."),
        ("20 177.5 40 0.8 re f", "Kept for ten years."),
        ("20 191 40 0.8 re f", "Kept for ten years."),
        ("20 170 0.8 40 re f", "Kept for ten years."),
    ],
)
def test_only_a_line_through_words_strikes_them_out(line, text):
    writer = made(["Kept for ten years."])
    stream = writer.pages[0]["/Contents"].get_object()
    assert isinstance(stream, StreamObject)
    width = 10 * (0.667 + 0.556 + 0.556 + 0.278)
    drawn = line.replace(" 40 0.8", f" {width:.1f} 0.8")
    stream.set_data(stream.get_data() + f"\n{drawn}".encode())
    assert read_document_pages("a.pdf", saved(writer))[0].text == text


def test_a_file_without_a_page_is_named_as_one():
    # The reader keeps the error of a file before.
    with pytest.raises(DocumentError, match="broken"):
        read_document("b.pdf", b"%PDF-1.7 nothing")
    with pytest.raises(DocumentError, match=r"^a\.pdf: the PDF has no page; get an intact copy$"):
        read_document("a.pdf", saved(PdfWriter()))


def test_hidden_notes_stay_hidden():
    writer = made(["Tea."])
    shown, hidden = Text(text="Seen.", rect=(9, 9, 9, 9)), Text(text="Not.", rect=(9, 9, 9, 9))
    hidden.flags = AnnotationFlag.HIDDEN
    for note in (shown, hidden):
        writer.add_annotation(0, note)
    assert read_document_pages("a.pdf", saved(writer))[0].text == "Tea.\n\n[Note: Seen.]"


def test_a_scan_is_named_as_one(real: Real):
    with pytest.raises(DocumentError, match=r"^a\.pdf: no text in it: a scan, 1 of 1 pages are"):
        read_document_pages("a.pdf", real(SCAN))


def test_a_scanned_page_beside_others_is_named(real: Real):
    writer = made(["Tea."])
    writer.append(PdfReader(BytesIO(real(SCAN))))
    writer.append(PdfReader(BytesIO(saved(made(["Water."], ["Milk."])))))
    reading = read_document_bounded("a.pdf", saved(writer))
    assert [page.unread for page in reading.pages] == [False, True, False, False]
    assert "text recognition (OCR)" in reading.pages[1].text
    assert reading.quality.warnings == ["Could not be read: page 2."]
    assert reading.quality.is_unreliable


def test_a_small_scan_on_a_large_sheet_is_not_taken_for_a_blank_page(real: Real):
    writer = made(["Tea."])
    writer.append(PdfReader(BytesIO(real(SCAN))))
    scan = writer.pages[1]
    scan.mediabox = scan.cropbox = RectangleObject(
        (0, 0, 2 * float(scan.mediabox.right), 2 * float(scan.mediabox.top))
    )
    reading = read_document_bounded("a.pdf", saved(writer))
    assert [page.unread for page in reading.pages] == [False, True]


def stamped(picture: Image.Image, stamp: str) -> Page:
    """Read a page that the picture covers, under a line of text."""
    drawn = BytesIO()
    picture.save(drawn, "PDF")
    writer = made(["Tea."])
    writer.append(PdfReader(drawn))
    writer.pages[1].merge_page(made([stamp]).pages[0])
    return read_document_bounded("a.pdf", saved(writer)).pages[1]


def test_a_stamped_scan_is_unread_and_says_the_stamp():
    paper = Image.new("L", (600, 800), 240)
    for line in range(60, 740, 20):
        ImageDraw.Draw(paper).text((60, line), "Each record must be kept for ten years. " * 2)
    stamp = "Case 1:22-cv-00123 Document 45 Filed 03/14/22 Page 3 of 17"
    page = stamped(paper, stamp)
    assert page.unread
    assert stamp in page.text


def test_a_title_that_a_program_wrapped_in_a_form_is_no_other_text():
    writer = made([])
    picture, drawn = Image.new("L", (600, 800), 250), BytesIO()
    picture.save(drawn, "PDF")
    writer.append(PdfReader(drawn))
    page, title = writer.pages[1], made([]).pages[0]
    form = DecodedStreamObject()
    lines = " ".join(["(Retention of records) Tj 0 -90 Td"] * 6)
    form.set_data(f"BT /F 60 Tf 20 700 Td {lines} ET".encode())
    form[NameObject("/Type")], form[NameObject("/Subtype")] = map(NameObject, ("/XObject", "/Form"))
    form[NameObject("/BBox")] = page.mediabox
    form[NameObject("/Resources")] = title[NameObject("/Resources")]
    resources: Any = page["/Resources"].get_object()
    resources["/XObject"].get_object()[NameObject("/Title")] = writer._add_object(form)
    content, before = DecodedStreamObject(), page.get_contents()
    assert before is not None
    content.set_data(b"q " + before.get_data() + b" Q /Title Do")
    page[NameObject("/Contents")] = writer._add_object(content)
    read = read_document_bounded("a.pdf", saved(writer)).pages[1]
    assert not read.unread
    assert "Retention of records" in read.text


def test_a_stamp_on_a_page_of_vast_size_is_read_in_little_memory():
    writer, drawn, side = made(["Tea."], ["Filed"]), BytesIO(), 100_000
    Image.new("L", (60, 60), 240).save(drawn, "PDF")
    picture = PdfReader(drawn).pages[0]
    larger = Transformation().scale(side / float(picture.mediabox.width))
    writer.pages[1].merge_transformed_page(picture, larger, over=False)
    writer.pages[1].mediabox = RectangleObject((0, 0, side, side))
    assert [page.text for page in read_document_bounded("a.pdf", saved(writer)).pages] == [
        "Tea.",
        "Filed",
    ]


@pytest.mark.parametrize("shade", [90, 250])
def test_a_photograph_or_background_under_a_heading_is_no_scan(shade: int):
    picture = Image.new("L", (600, 800), shade)
    ImageDraw.Draw(picture).rectangle((0, 0, 600, 60), fill=30)
    assert stamped(picture, "Part Two").text == "Part Two"


def test_many_pages_take_seconds_and_little_memory():
    page = ["Every record must be kept for ten years, and no other shall be."] * 12
    count, memory_mb = soak((500, 250), (2000, 600))
    data = saved(made(*([page] * count)))
    assert len(extract_bounded("a.pdf", data, seconds=100, memory_mb=memory_mb)) == count


def test_a_page_tree_that_goes_in_circles_has_an_end():
    data = saved(made(["Tea."])).replace(b"/Kids [ ", b"/Kids [ 2 0 R 2 0 R ")
    with suppress(DocumentError):
        assert len(extract_bounded("a.pdf", data, seconds=30)) < 10


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of Debian's policy manual, where its package is installed or fetched."""
    folder = Path("usr/share/doc/debian-policy")
    if (installed := Path("/", folder)).exists():
        return installed
    packages = sorted(FETCHED.glob("debian-policy_*.deb"))
    if not packages or shutil.which("dpkg-deb") is None:
        pytest.skip(
            "Debian's policy manual is not there: `apt-get download debian-policy` in "
            "tests/.fetched brings it on Debian"
        )
    root = tmp_path_factory.mktemp("debian-policy")
    subprocess.run(["dpkg-deb", "-x", str(packages[-1]), str(root)], check=True)
    return root / folder


def test_the_policy_manual_has_the_words_that_pdftotext_finds(policy: Path):
    data = gzip.decompress((policy / "policy.pdf.gz").read_bytes())
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not there: Debian's poppler-utils brings it")
    out = subprocess.run(["pdftotext", "-", "-"], input=data, capture_output=True, check=True)
    theirs = out.stdout.decode()
    reading = read_document_bounded("policy.pdf", data)
    ours = "\n".join(page.text for page in reading.pages)
    assert not reading.quality
    for word in ("must", "should", "may", "shall"):
        counts = [len(re.findall(rf"\b{word}\b", text)) for text in (ours, theirs)]
        assert abs(counts[0] - counts[1]) <= 0.02 * counts[1]
    title = "2.3 Copyright considerations"
    title_pages = [page for page in reading.pages if title in page.sections]
    # The section continues after the end of a page.
    assert [(page.number, page.label) for page in title_pages] == [(19, "9"), (20, "10")]
    assert section_on_page(title_pages[0], title_pages[0].text.index(title) + 50) == title
    assert section_on_page(title_pages[1], 0) == title


def test_the_policy_manual_demands_the_same_as_pdf_and_as_html(policy: Path):
    def demands(name: str, data: bytes) -> Counter[str]:
        sentences = [
            sentence
            for sentence in identify_candidates(read_document_pages(name, data))
            if sentence.binds
        ]
        return Counter(re.sub(r"\W+", "", f"{entry.text}{entry.rest}") for entry in sentences)

    pdf = demands("policy.pdf", gzip.decompress((policy / "policy.pdf.gz").read_bytes()))
    html = Counter[str]()
    for chapter in sorted(policy.glob("policy.html/*-*.html")):
        html += demands(chapter.name, chapter.read_bytes())
    assert (pdf & html).total() >= 0.99 * max(pdf.total(), html.total())
