import time
from pathlib import Path

import pytest
import yaml

from activities.job.brief_statements import MAX_TEXT, Statement, brief_statements
from activities.job.named_results import named_results
from activities.job.scope_list import scope_list
from activities.preparation.job_scope import group_statements
from tests.soak import patient

ROOT = Path(__file__).parents[3]
BRIEFS = yaml.safe_load((Path(__file__).parent / "briefs.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", BRIEFS)
def test_statements_of_a_brief(name: str) -> None:
    case = BRIEFS[name]
    found = brief_statements(case["brief"], "instructions.md")
    assert [each.text for each in found] == case["statements"]


def test_a_statement_has_its_place_and_its_files() -> None:
    text = (
        "# Coffee\n\nIt is old.\n\n## Report\nRead prices.csv. Write\n`output/report.md`, and do\n"
        "not touch\nREADME.md.\n\n| Task |\n|--|\n| fix src/x.py |\n\n- Save it as data/all.json\n"
    )
    assert brief_statements(text, "brief.md") == [
        Statement("Read prices.csv.", "brief.md", 6, "Report"),
        Statement(
            "Write output/report.md, and do not touch README.md.",
            "brief.md", 6, "Report", ("output/report.md",),
        ),
        Statement("fix src/x.py", "brief.md", 13, "Report", ("src/x.py",)),
        Statement("Save it as data/all.json", "brief.md", 15, "Report", ("data/all.json",)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("Summarise report.pdf in output/summary.md", ["output/summary.md"]),
        ("Compare a.csv with b.csv and write the gaps to gaps.md.", ["gaps.md"]),
        ("Write a summary of documents/spec.pdf.", []),
        ("The README.md must list all commands.", ["README.md"]),
        ("Implement the parser in src/tea/parser.py.", ["src/tea/parser.py"]),
        ("Use Node.js 20, e.g. version 3.11, from https://example.com/a.html.", []),
        ("Write output/<name>.md for each of the files in output/*.csv.", []),
        ("Never write to setup.py.", []),
        ("Create Makefile and output/build/.", ["Makefile", "output/build/"]),
        ("Schreibe die Lücken aus liste.csv in output/lücken.md.", ["output/lücken.md"]),
        ("Mail it to anna@example.com.", []),
        ("The results are output/a.json and output/b.md.", ["output/a.json", "output/b.md"]),
    ],
)
def test_files_named_as_results(text: str, paths: list[str]) -> None:
    assert named_results(text) == paths


def test_a_path_keeps_its_marks() -> None:
    said = "Create src/__init__.py, __main__.py, __tests__/a.js, output/*.csv and docs/**/*.md."
    [found] = brief_statements(f"**Note:** _all_ are __new__.\n\n{said}\n", "b.md")
    assert found.text == said


def test_long_texts_are_bounded_and_keep_their_entry() -> None:
    lead = f"The report must say, {'and ' * 200}cover:"
    [one] = brief_statements(f"{lead}\n- prices\n", "b.md")
    assert one.text.endswith("… prices")
    [other] = brief_statements(f"Write {'very ' * 200}much.", "b.md")
    assert len(other.text) <= MAX_TEXT


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("## Scope\n- a\n- b\n## Else\n- c", ["a", "b"]),
        ("\ufeff## **Scope**\n- a\n## __Else__:\n- d\n", ["a"]),
        ("### Scope of work\n1. a\n2. b", ["a", "b"]),
        ("## 2. Scope\n\na) x\nb) y", ["x", "y"]),
        ("2.1 Scope\n\n- x\n- y", ["x", "y"]),
        ("**Scope:**\n\n(a) x\n(b) y\n\nMore.\n\n- z", ["x", "y"]),
        ("Scope:\n- a\n- b\n\nNotes:\n- c", ["a", "b"]),
        ("SCOPE\n\n• a\n• b", ["a", "b"]),
        ("Scope\n-----\n* a\n+ b", ["a", "b"]),
        ("Scope: the parser; the printer.", ["the parser", "the printer"]),
        ("Scope: (1) the parser, (2) the printer", ["the parser", "the printer"]),
        ("# Umfang\n- [ ] a\n- [x] b", ["a", "b"]),
        ("## Leistungsumfang\n\u2013 a\n\u2013 b", ["a", "b"]),
        ("## Scope\n| Id | Part |\n|--|--|\n| 1 | parser |", ["1 | parser"]),
        ("## Scope\n- read\n  - csv\n  - json\n- print", ["read: csv", "read: json", "print"]),
        ("## Scope\n### Part one\n- a\n### Examples\n- no\n### Part two\n- b", ["a", "b"]),
        ("## Scope\n```\n- no\n```\n> - no\n<!-- - no -->\n- ~~no~~\n- a", ["a"]),
        ("- Scope:\n  - a\n  - b\n- Other", ["a", "b"]),
        ("## In scope\n- a\n## Out of scope\n- b", ["a"]),
    ],
)  # fmt: skip
def test_scope_in_every_form(text: str, entries: list[str]) -> None:
    found = scope_list(text)
    assert (list(found.entries), found.found) == (entries, True)


def test_a_scope_without_a_list_is_found_but_not_read() -> None:
    assert scope_list("## Scope\n\nAll of it.\n") == scope_list("# Umfang\nAlles.\n")
    assert (scope_list("## Scope\nAll.").entries, scope_list("## Scope\nAll.").found) == ((), True)
    for text in ("", "The scope is wide.", "## Scope creep\n- a", "## Out of scope\n- a"):
        assert not scope_list(text).found


@pytest.mark.parametrize(
    ("headings", "groups"),
    [
        (["a"] * 40, 40), (["a"] * 41, 6), ([""] * 41, 21), ([""] * 400, 40),
        ([f"h{n // 3}" for n in range(90)], 30), ([f"h{n}" for n in range(900)], 40),
        (["a", *["b"] * 300, "c"], 40),
    ],
)  # fmt: skip
def test_many_statements_are_grouped_and_none_is_lost(headings: list[str], groups: int) -> None:
    statements = [Statement(f"s{n}", "b.md", n + 1, heading) for n, heading in enumerate(headings)]
    found = group_statements(statements)
    assert [each for group in found for each in group.statements] == statements
    assert groups - 4 <= len(found) <= groups
    assert all(group.title for group in found)


def test_the_text_of_an_agent_instructs_and_a_description_does_not() -> None:
    def share(path: Path) -> float:
        text = path.read_text(encoding="utf-8")
        return len(brief_statements(text, path.name)) / max(1, len(text.splitlines()))

    asked = ROOT / "config" / "agents"
    assert share(asked / "tester" / "instructions.md") > 0.25
    for name in ("architecture", "documents", "context", "search"):
        assert share(ROOT / "docs" / f"{name}.md") < 0.03, name


def test_hostile_briefs_are_read_in_time() -> None:
    begun = time.process_time()
    for text in (
        "[" * 20_000, "*a " * 10_000, "```a\n" * 10_000, "~~~~~\n" + "```\n" * 10_000,
        ("ab" * 16 + " ") * 500, "a/" * 20_000 + "x", "<del>" * 10_000, "a) x b) y " * 2_000,
        "\n".join(" " * n + "- a" for n in range(500)), "# Head\nWrite a file.\n" * 1_000,
    ):  # fmt: skip
        group_statements(brief_statements(text, "b.md"))
        scope_list(f"Scope:\n{text}")
    assert time.process_time() - begun < patient(10)
