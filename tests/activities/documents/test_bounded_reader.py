"""A document may hang, crash or flood its parser; the process that asked lives on."""

import os
import signal
import time
import zlib
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import docx
import pytest

from activities.documents.document_reader import MAX_CHARACTERS
from activities.documents.pages import DocumentError
from tests.document_pages import extract_bounded, read_document_pages
from tests.interruption import Interrupted, done_once, interrupted_once
from tests.soak import patient


def _pdf(content: bytes) -> bytes:
    """Return a one-page PDF whose content stream, of any size, compresses to almost nothing."""
    packed = zlib.compress(content)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R"
        b"/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed),
    ]
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 5\n0000000000 65535 f \n"
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % table
    return bytes(out)


@pytest.fixture(scope="module")
def endless():
    """Return hundreds of times what a parser can handle in the seconds given here."""
    return _pdf(b"BT /F 9 Tf (abc) Tj ET\n" * 3_000_000)


def _children():
    child_ids = set()
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        # A thread left by another test may end at this moment.
        with suppress(OSError):
            child_ids.update((task / "children").read_text().split())
    return child_ids


def test_same_pages_as_in_process(real):
    data = real("pypdf-7.1.0/resources/pdflatex-outline.pdf")
    assert extract_bounded("a.pdf", data) == read_document_pages("a.pdf", data)


def test_any_current_directory(real, tmp_path, monkeypatch):
    data = real("python_docx-1.2.0/features/steps/test_files/doc-add-section.docx")
    (tmp_path / "docx.py").write_text("raise SystemExit('not the library')")
    monkeypatch.chdir(tmp_path)
    pages = extract_bounded("-odd name; $(x).docx", data)
    assert [page.text for page in pages] == ["First page", "Second page", "Third page"]


def test_error_of_the_child_is_the_error_here(real):
    with pytest.raises(DocumentError, match=r"^a\.pdf: the PDF is encrypted"):
        extract_bounded("a.pdf", real("pypdf-7.1.0/resources/encryption/r2-user-password.pdf"))


def test_hanging_parse_is_stopped(endless):
    others = _children()
    started = time.monotonic()
    with pytest.raises(DocumentError, match=r"^a\.pdf: .* more than 1\.5 s"):
        extract_bounded("a.pdf", endless, seconds=1.5)
    assert time.monotonic() - started < patient(6)
    assert not _children() - others


def test_parse_that_eats_memory_is_stopped(endless):
    with pytest.raises(DocumentError, match=r"^a\.pdf: .* more than 140 MB of memory"):
        extract_bounded("a.pdf", endless, seconds=60, memory_mb=140)


def test_word_document_that_unpacks_to_far_more():
    plain, packed = BytesIO(), BytesIO()
    docx.Document().save(plain)
    with ZipFile(plain) as good, ZipFile(packed, "w", ZIP_DEFLATED, compresslevel=1) as bomb:
        for member in good.namelist():
            if member != "word/document.xml":
                bomb.writestr(member, good.read(member))
        with bomb.open("word/document.xml", "w", force_zip64=True) as body:
            for _ in range(150):
                body.write(b" " * 1_000_000)
    with pytest.raises(DocumentError, match=r"^a\.docx: .* more than 160 MB of memory"):
        extract_bounded("a.docx", packed.getvalue(), memory_mb=160)


def test_word_document_of_more_paragraphs_than_memory_holds():
    plain, packed = BytesIO(), BytesIO()
    docx.Document().save(plain)
    with ZipFile(plain) as good, ZipFile(packed, "w", ZIP_DEFLATED, compresslevel=1) as bomb:
        for member in good.namelist():
            if member != "word/document.xml":
                bomb.writestr(member, good.read(member))
        start, _, end = good.read("word/document.xml").decode().partition("<w:body>")
        bomb.writestr("word/document.xml", f"{start}<w:body>{'<w:p/>' * 4_000_000}{end}")
    with pytest.raises(DocumentError, match=r"^a\.docx: .* more than 300 MB of memory"):
        extract_bounded("a.docx", packed.getvalue(), memory_mb=300)


def test_interruption_kills_the_child(endless):
    others = _children()
    with pytest.raises(Interrupted), interrupted_once(lambda: _children() - others):
        extract_bounded("a.pdf", endless)
    # A child that another test's thread starts for a moment is gone soon.
    end = time.monotonic() + patient(2)
    while _children() - others and time.monotonic() < end:
        time.sleep(0.05)
    assert not _children() - others


@pytest.mark.parametrize(
    ("with_signal", "reason"), [(signal.SIGSEGV, "crashed the parser"), (signal.SIGKILL, "memory")]
)
def test_crash_of_the_child_is_told(endless, with_signal, reason):
    others = _children()

    def crash():
        for pid in _children() - others:
            os.kill(int(pid), with_signal)

    with (
        pytest.raises(DocumentError, match=rf"^a\.pdf: .*{reason}"),
        done_once(lambda: _children() - others, crash),
    ):
        extract_bounded("a.pdf", endless)


def test_small_text_needs_no_process():
    # No process could answer within 0 seconds.
    assert extract_bounded("a.md", b"# Title\ntext", seconds=0)[0].text == "# Title\ntext"


def test_a_text_without_measure_is_told_and_not_read():
    with pytest.raises(
        DocumentError, match=r"^a\.md: .* 100,000,001 characters .*; split the file"
    ):
        extract_bounded("a.md", b"a" * (MAX_CHARACTERS + 1))
