"""The document's own numbers, as a ledger and as names of items."""

import pytest

from activities.documents.pages import Page
from activities.requirements.text.item_numbers import ENTRY
from activities.requirements.text.statements import statements_of

TABLE = "\n\n".join(
    ["# | Description | Level"]
    + [f"{n}.1.{m} | Verify that rule {m} of part {n} is kept. | 1" for n in (1, 2) for m in (1, 2)]
)
GERMAN = "\n\n".join(
    ["Nr. | Titel | Anforderung"]
    + [f"NET.{n}{'.1' * (n % 2)} | Netze | Netze SOLLTEN Regel {n} verankern." for n in range(1, 6)]
)
ALONE = "\n\n".join(
    f"## Import {n}\n\n`req~import-{n}~1`\n\nThe tool reads files of form {n}.\n\nNeeds: dsn"
    for n in range(1, 5)
)
CRITERIA = "\n\n".join(
    f"#### Success Criterion 1.{n}.1 Captions\n\n(Level A)\n\nCaptions exist for medium {n}."
    for n in range(1, 5)
)
FEATURES = "\n\n".join(
    f"`feat~part-{n}~1`\n\nOne thing.\n\nCovers:\n\n* `req~other-{n}~1`\n\nNeeds: dsn"
    for n in range(1, 5)
)
HEADINGS = "\n\n".join(f"## {n}.1 Scope\n\nThe tool must keep rule {n}." for n in range(1, 7))
REFERENCES = "\n\n".join(
    f"{number}\n\nThe tool must keep it."
    for number in ("9.2.1", "4.9.2", "5.1.3", "2.2.2", "7.1.1")
)


@pytest.mark.parametrize(
    ("text", "sections", "expected"),
    [
        (TABLE, [], ("N.N.N in tables", 4, True)),
        (GERMAN, [], ("A.N in tables", 5, True)),
        (ALONE, [], ("req~…~N above a text", 4, True)),
        (FEATURES, [], ("feat~…~N above a text", 4, None)),
        (CRITERIA, [], ("Success Criterion N.N.N at headings", 4, True)),
        (HEADINGS, [], ("N.N at headings", 6, False)),
        (REFERENCES, [], None),
    ],
)
def test_forms_of_numbers(
    text: str, sections: list[str], expected: tuple[str, int, bool] | None
) -> None:
    marked = [line.lstrip("# ") for line in text.split("\n") if line.startswith("##")]
    classes = statements_of([Page(1, text, sections=sections or marked)]).number_classes
    found = [(each.name, len(each.entries), each.are_requirements) for each in classes]
    assert found == ([expected] if expected else [])


def test_an_entry_has_all_of_its_words_and_no_others() -> None:
    marked = [line.lstrip("# ") for line in ALONE.split("\n") if line.startswith("##")]
    [numbers] = statements_of([Page(1, ALONE, sections=marked)]).number_classes
    assert numbers.entries[1].passages == ("The tool reads files of form 2.",)


def test_items_are_called_as_the_document_calls_them() -> None:
    text = (
        "AU-02 Event Logging\n\na. Develop a policy that:\n\n1. Has rules:\n\n(a) names roles; "
        "and\n\n(b) names duties;\n\n2. Has a date.\n\nb. Keep the policy.\n\n"
        "The rest is told elsewhere."
    )
    page = Page(1, text, sections=["AU-02 Event Logging"])
    numbers = [each.source_id for each in statements_of([page]).in_order]
    assert numbers == [
        "AU-02", "AU-02 a", "AU-02 a.1", "AU-02 a.1.(a)", "AU-02 a.1.(b)", "AU-02 a.2", "AU-02 b",
        "AU-02",
    ]  # fmt: skip


def test_paragraphs_of_a_law_are_not_items_of_its_lists() -> None:
    text = (
        "§ 257 Fristen\n\n(1) Jeder ist verpflichtet, aufzubewahren:\n\n1. Bücher,\n\n2. "
        "Briefe.\n\n(2) Briefe sind Schriftstücke."
    )
    page = Page(1, text, sections=["§ 257 Fristen"])
    numbers = [each.source_id for each in statements_of([page]).in_order]
    assert numbers == ["§ 257", "§ 257 (1)", "§ 257 (1) 1", "§ 257 (1) 2", "§ 257 (2)"]


def test_a_long_word_with_digits_takes_no_time() -> None:
    assert ENTRY.match("a1" + "b" * 5000 + "!") is None
