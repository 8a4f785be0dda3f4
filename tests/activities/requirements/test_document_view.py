"""What counts as a candidate of a document, with what was decided about it."""

from activities.documents.pages import Page
from activities.requirements.completeness import DocumentDecisions
from activities.requirements.document_view import DocumentView
from config.schema.agent_sections import AgentSettings

ROWS = [
    f"NET.{n} | Nets must keep rule {n}. | The plan should say why, and rule {n} helps."
    if n % 2
    else f"NET.{n} | Nets must keep rule {n}. | It helps."
    for n in range(1, 9)
]
PROSE = "Readers should know the words.\n\nThe annex must be read first."


def _sure(text: str) -> list[str]:
    view = DocumentView(
        "documents/a.md",
        [Page(1, text)],
        DocumentDecisions(document="documents/a.md"),
        AgentSettings(),
    )
    return [each.text for each in view.candidates if each.confidence >= 0.5]


def test_what_stands_beside_the_entries_of_a_catalogue_is_less_sure() -> None:
    entries = [f"Nets must keep rule {n}." for n in range(1, 9)]
    assert _sure("\n\n".join([PROSE, *ROWS])) == entries


def test_more_prose_than_entries_makes_no_catalogue() -> None:
    prose = "\n\n".join(f"The clerk must file form {n}." for n in range(9))
    assert len(_sure("\n\n".join([prose, *ROWS]))) == 9 + len(ROWS) + len(ROWS) // 2


def test_a_second_column_of_requirements_is_one() -> None:
    rows = [
        f"NET.{n} | Nets must keep rule {n}. | The plan should show rule {n}." for n in range(1, 9)
    ]
    assert len(_sure("\n\n".join(rows))) == 16
