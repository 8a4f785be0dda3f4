"""Tables of PDFs: rows in lines of text, over line ends and page ends."""

from activities.documents.document_reader import read_document
from activities.documents.pages import Page
from activities.documents.pdf_lines import Box, Line, spaced_pdf_line
from activities.documents.pdf_tables import join_table_rows
from activities.requirements.text.candidate_sentences import identify_candidates
from tests.activities.documents.test_pdf import made, saved

COLUMNS = (0, 40, 200)


def _row(*cells: str) -> str:
    """Return a line of `made` with cells that begin at `COLUMNS`."""
    shown = [
        f"{left} 0 Td ({text}) Tj {-left} 0 Td"
        for left, text in zip(COLUMNS, cells, strict=False)
        if text
    ]
    return f") Tj {' '.join(shown)} ("


def _pages(*pages: list[str]) -> list[Page]:
    return read_document("a.pdf", saved(made(*pages))).pages


TABLE = [
    _row("R1", "The pump shall stop.", "Test"),
    "",
    _row("R2", "The valve shall close", "Inspection"),
    _row("", "when the pressure exceeds"),
]


def test_rows_are_lines_with_all_words_of_each_cell() -> None:
    [page] = _pages([*TABLE, "", "", "Other text follows."])
    assert [line for line in page.text.split("\n") if line] == [
        "R1 | The pump shall stop. | Test",
        "R2 | The valve shall close when the pressure exceeds | Inspection",
        "Other text follows.",
    ]


def test_a_cell_goes_on_over_the_end_of_the_page() -> None:
    pages = _pages(
        TABLE, [_row("", "six bar."), "", _row("R3", "The horn shall sound twice.", "Test")]
    )
    assert pages[1].text.split("\n")[0] == "| six bar."
    found = [(each.page, each.number, each.text, each.rest) for each in identify_candidates(pages)]
    assert found == [
        (1, "R1", "The pump shall stop.", ""),
        (1, "R2", "The valve shall close when the pressure exceeds", "six bar."),
        (2, "R3", "The horn shall sound twice.", ""),
    ]


def test_items_behind_their_numbers_are_no_table() -> None:
    [page] = _pages([_row("1.", "Doors must be locked."), _row("2.", "Lamps must be out.")])
    assert page.text == "1. Doors must be locked.\n2. Lamps must be out."


def test_a_single_wide_gap_is_no_table() -> None:
    [page] = _pages([_row("Manual", "", "Chapter 3"), "", "Doors must be locked."])
    assert "|" not in page.text


def _line(text: str, left: float, bottom: float, *cells: tuple[float, str]) -> Line:
    right = (cells[-1][0] if cells else left) + 4 * len(cells[-1][1] if cells else text)
    return Line(text, Box(left, right, bottom, bottom + 10), list(cells))


def test_cells_may_come_one_after_the_other() -> None:
    head = _line("Nr. Rule Test", 0, 100, (0, "Nr."), (40, "Rule"), (100, "Test"))
    lines = [head]
    for number, top in ((1, 80), (2, 40)):
        lines += [
            _line(f"R{number}", 0, top),
            _line("Doors must", 40, top),
            _line("be locked.", 40, top - 12),
            _line("By eye", 100, top),
            _line("and hand", 100, top - 12),
        ]
    rows, columns = join_table_rows(lines, [])
    assert [row.text for row in rows] == [
        "Nr. | Rule | Test",
        "R1 | Doors must be locked. | By eye and hand",
        "R2 | Doors must be locked. | By eye and hand",
    ]
    assert columns == [0, 40, 100]
    text = _line("This stands below the table, and is wider than its column.", 0, 10)
    assert join_table_rows([*lines, text], [])[0][-1].text == text.text


def test_a_lower_cell_may_stand_at_half_the_height_of_its_row() -> None:
    head = _line("No. Rule Test", 0, 100, (0, "No."), (40, "Rule"), (100, "Test"))
    row = [_line("R1", 0, 73), _line("Doors must", 40, 80), _line("be locked.", 40, 66)]
    row.append(_line("By eye", 100, 73))
    last = _line("R2 Lamps out By ear", 0, 40, (0, "R2"), (40, "Lamps out"), (100, "By ear"))
    rows, _ = join_table_rows([head, *row, last], [])
    assert [each.text for each in rows] == [
        "No. | Rule | Test",
        "R1 | Doors must be locked. | By eye",
        "R2 | Lamps out | By ear",
    ]


def test_a_drawn_line_divides_cells_that_are_near_one_another() -> None:
    text = "No Fee"
    lefts = [0, 6, 12, 15, 21, 27]
    boxes = [Box(left, left + 5.5, 0, 10) for left in lefts]
    places = [0, 1, 3, 4, 5]
    drawn = [Box(13, 13.5, -5, 15)]
    assert spaced_pdf_line(text, boxes, places).cells == []
    assert [cell for _, cell in spaced_pdf_line(text, boxes, places, drawn).cells] == ["No", "Fee"]
    below = [Box(13, 13.5, -30, -10)]
    assert spaced_pdf_line(text, boxes, places, below).cells == []
