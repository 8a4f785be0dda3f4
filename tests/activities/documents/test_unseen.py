"""What no reader of a document sees is not in its text."""

from __future__ import annotations

import pytest

from activities.documents.document_reader import read_document
from activities.documents.pages import DocumentError

RULE = "Records must be kept."
SEEN = "Seen text stands here."


@pytest.mark.parametrize(
    "styled",
    [
        'style="opacity:0"',
        'style="font-size:1px"',
        'style="color:transparent"',
        'style="color:rgba(0,0,0,0)"',
        'style="color:white"',
        'style="color:#123456;background:#123456"',
        'style="text-indent:-9999px"',
        'style="clip-path:inset(50%)"',
        'style="height:0;overflow:hidden"',
        'style="transform:scale(0)"',
        'id="gone"',
        'class="pale"',
    ],
)
def test_html_that_nobody_sees(styled: str) -> None:
    sheet = "<style>#gone{display:none}.pale{color:#fff}</style>"
    text = f"<html><head>{sheet}</head><body><p>{SEEN}</p><p {styled}>{RULE}</p></body></html>"
    reading = read_document("a.html", text.encode())
    assert reading.pages[0].text.strip() == SEEN
    assert reading.omitted_passages == {"hidden": 1}


@pytest.mark.parametrize(
    "styled",
    ['style="color:white;background:navy"', 'style="opacity:0.5"', 'style="font-size:12px"', ""],
)
def test_html_that_is_seen(styled: str) -> None:
    text = f"<html><body><p>{SEEN}</p><p {styled}>{RULE}</p></body></html>"
    assert RULE in read_document("a.html", text.encode()).pages[0].text


def test_markdown_without_comments_and_strikes() -> None:
    text = f"{SEEN}\n\n<!-- {RULE} -->\n\n~~{RULE}~~\n\n<del>{RULE}</del>\n\n`<!-- code -->`\n"
    reading = read_document("a.md", text.encode())
    assert reading.pages[0].text.split() == [*SEEN.split(), "`<!--", "code", "-->`"]
    assert reading.omitted_passages == {"hidden": 1, "struck": 2}


def test_mail_is_refused_by_its_kind() -> None:
    mail = b"From: a@example.org\nSubject: Rules\nMIME-Version: 1.0\n\nRecords must be kept.\n"
    with pytest.raises(DocumentError, match="an e-mail or a web page saved as one"):
        read_document("a.eml", mail)
