"""What is of the kind that its name says, and what is not."""

import pytest

from activities.job.file_formats import wrong_format_reason
from tests.activities.job.test_deliverables import packed, word

TEXT = b"This is the report."


@pytest.mark.parametrize(
    ("path", "content", "why"),
    [
        ("a.pdf", TEXT, "is not a PDF"),
        ("a.xlsx", b"a,b\n1,2\n", "is not an Excel workbook: it is plain text"),
        ("a.docx", b"PK\x03\x04 nothing", "is not a Word document"),
        ("a.docx", packed(a="tea"), "no part word/document"),
        ("a.xlsx", word("Tea"), "no part xl/workbook"),
        ("a.png", TEXT, "is plain text"),
        ("a.json", b"{a: 1, b", "line 1, column 2"),
        ("a.json", b'[{"a": 1}', "is not JSON"),
        ("a.ipynb", TEXT, "is not JSON"),
    ],
)
def test_a_file_of_another_format_is_found(path: str, content: bytes, why: str) -> None:
    assert why in (wrong_format_reason(path, content) or "")


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.pdf", b"\n%PDF-1.7\n%\xe2"),
        ("a.docx", word("Tea")),
        ("a.docx", b"\xd0\xcf\x11\xe0 encrypted"),
        ("a.xlsx", packed(xl__workbook_xml="<a/>")),
        ("a.zip", packed(a="tea")),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0"),
        ("a.jpg", b"version https://git-lfs.github.com/spec/v1\n"),
        ("a.json", b'\xef\xbb\xbf{"a": 1}'),
        ("a.json", '{"a": 1}'.encode("utf-16")),
        ("a.json", b'// why\n{"a": "http://x", /* b */ "c": [1, 2,],}'),
        ("a.json", b'{"a": 1}\n{"a": 2}\n'),
        ("a.json", b'{"a": {{ value }} }'),
        ("a.md", TEXT),
        ("json", TEXT),
    ],
)
def test_a_file_of_its_format_is_not_refused(path: str, content: bytes) -> None:
    assert wrong_format_reason(path, content) is None
