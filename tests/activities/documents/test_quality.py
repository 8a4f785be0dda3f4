"""A text that came out broken is known from one that did not."""

from pathlib import Path

import pytest

from activities.documents.document_reader import read_document
from activities.documents.pages import Page, Quality, ReadingResult, unread_page_placeholder
from activities.documents.quality import assess_quality
from tests.conftest import Real
from tests.document_pages import read_document_pages

SENTENCE = (
    "Every package must have a name, and the name should be short, since it is shown in lists "
    "of packages and is a part of the names of files on the mirrors of the archive. "
)


def quality(*texts: str) -> Quality:
    return assess_quality(
        ReadingResult([Page(number, text) for number, text in enumerate(texts, 1)])
    )


def test_a_good_text_is_not_spoken_of():
    assert not quality(SENTENCE * 20, SENTENCE)
    assert not quality("Die Aufbewahrung der Belege ist für die Prüfung nötig. " * 40)
    assert not quality("x = a b c d e f\ny = g h\n" * 40 + SENTENCE * 40)
    assert not quality("記録は十年間保存しなければならない。" * 40)


@pytest.mark.parametrize(
    ("broken", "warning"),
    [
        (SENTENCE.replace(" ", ""), "Words run together: page 2."),
        (
            " ".join(f"{word[:-1]} {word[-1]}" for word in SENTENCE.split()),
            "Words are torn into letters: page 2.",
        ),
        (SENTENCE.replace("a", "\ufffd"), "Characters have no meaning: page 2."),
        (SENTENCE.replace("e", "\ue123"), "Characters have no meaning: page 2."),
        (SENTENCE.replace("a", "д"), "Letters of several scripts are mixed in words: page 2."),
        (unread_page_placeholder("a scan"), "Could not be read: page 2."),
    ],
)
def test_what_is_broken_is_named_with_its_page(broken, warning):
    report = quality(SENTENCE, broken, SENTENCE)
    assert report.warnings == [warning]
    assert report.pages == [2]
    assert report.is_unreliable
    assert quality(*[SENTENCE] * 99, broken).is_unreliable is False


def test_a_text_in_no_language_is_doubted():
    words = SENTENCE.translate(str.maketrans("aeiourst", "qxzvkwjy")) * 20
    report = quality(words)
    assert report.warnings == ["Hardly a common word of any known language is in the text."]
    assert report.is_unreliable


def test_a_list_in_a_text_file_is_not_doubted():
    rows = "\n".join(f"kvqz{number};xkwy;zzvp" for number in range(400))
    assert not read_document("ids.csv", rows.encode()).quality


def test_a_cover_that_is_a_picture_spoils_no_book():
    report = quality(unread_page_placeholder("a picture"), *[SENTENCE] * 5)
    assert report.warnings == ["Could not be read: page 1."]
    assert not report.is_unreliable
    assert quality(SENTENCE, unread_page_placeholder("a picture"), SENTENCE).is_unreliable


def test_a_scan_with_broken_recognition_is_named(real: Real):
    data = real("pypdf-7.1.0/resources/indirect-rotation.pdf")
    report = assess_quality(ReadingResult(read_document_pages("a.pdf", data)))
    assert report.warnings == ["Words are torn into letters: pages 1, 2, 5."]
    assert report.is_unreliable


def test_a_record_comes_back_as_it_was():
    record = Quality(["One.", "Two."], [1, 2], is_unreliable=True)
    assert Quality.from_json(record.as_json()) == record
    assert str(record) == "One. Two."
    with pytest.raises(ValueError, match="unexpected"):
        Quality.from_json('{"unexpected": 1}')


def test_cases_were_read_well():
    folder = Path(__file__).parent / "cases"
    for path in folder.glob("docx-*"):
        assert not assess_quality(ReadingResult(read_document_pages(path.name, path.read_bytes())))
