"""What no reader of a document sees is not in its text."""

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


SHOW = "BT /F1 12 Tf 50 {y} Td ({text}) Tj ET\n"
LAYER = "/OC /Hidden BDC {rule}EMC"


def pdf_of(content: str) -> bytes:
    """Make a PDF of one page with a layer that is off."""
    objects = [
        "<</Type/Catalog/Pages 2 0 R/OCProperties<</OCGs[5 0 R]/D<</OFF[5 0 R]>>>>>>",
        "<</Type/Pages/Count 1/Kids[3 0 R]>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 200]/Contents 6 0 R/Resources"
        "<</Font<</F1 4 0 R>>/Properties<</Hidden 5 0 R>>>>>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        "<</Type/OCG/Name(Old)>>",
        f"<</Length {len(content)}>>\nstream\n{content}\nendstream",
    ]
    text, offsets = "%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(f"{len(text):010} 00000 n \n")
        text += f"{number} 0 obj\n{body}\nendobj\n"
    table = f"xref\n0 7\n0000000000 65535 f \n{''.join(offsets)}"
    return f"{text}{table}trailer<</Root 1 0 R/Size 7>>\nstartxref\n{len(text)}\n%%EOF".encode()


@pytest.mark.parametrize(
    ("content", "omitted"),
    [
        ("{rule}1 1 1 rg 40 90 300 30 re f", "hidden"),
        ("{rule}0 0 0 rg 40 90 300 30 re f", "hidden"),
        ("q 0 0 10 10 re W n {rule}Q", "hidden"),
        (LAYER, "hidden"),
        ("1 1 1 rg {rule}", "hidden"),
        ("3 Tr {rule}", "hidden"),
        ("{rule}1 w 50 104 m 330 104 l S", "struck"),
        ("{rule}4 w 50 104 m 330 104 l S", "struck"),
        ("{rule}1 w 50 104 m 100 104 l S 100 104 m 330 104 l S", "struck"),
        # What is seen: white on a dark ground, a rule below, a ground below the text.
        ("0 0 0.5 rg 40 90 300 30 re f 1 1 1 rg {rule}", ""),
        ("{rule}1 w 50 97 m 330 97 l S", ""),
        ("0.9 0.9 1 rg 40 90 300 30 re f 0 0 0 rg {rule}", ""),
    ],
)
def test_pdf_text_is_what_a_reader_of_the_page_sees(content: str, omitted: str) -> None:
    drawn = content.format(rule=SHOW.format(y=100, text=RULE))
    reading = read_document("a.pdf", pdf_of(SHOW.format(y=150, text=SEEN) + drawn))
    assert reading.pages[0].text.split() == [*SEEN.split(), *([] if omitted else RULE.split())]
    assert reading.omitted_passages == ({omitted: 1} if omitted else {})


def test_markdown_without_comments_and_strikes() -> None:
    text = f"{SEEN}\n\n<!-- {RULE} -->\n\n~~{RULE}~~\n\n<del>{RULE}</del>\n\n`<!-- code -->`\n"
    reading = read_document("a.md", text.encode())
    assert reading.pages[0].text.split() == [*SEEN.split(), "`<!--", "code", "-->`"]
    assert reading.omitted_passages == {"hidden": 1, "struck": 2}


def test_mail_is_refused_by_its_kind() -> None:
    mail = b"From: a@example.org\nSubject: Rules\nMIME-Version: 1.0\n\nRecords must be kept.\n"
    with pytest.raises(DocumentError, match="an e-mail or a web page saved as one"):
        read_document("a.eml", mail)
