"""What code checks of a statement: it finds what is plainly amiss, and refuses no honest work."""

from pathlib import Path

import pytest

from activities.checkpoints import Files, Root, open_checkpoints
from activities.job.brief_statements import brief_statements
from activities.job.statement_checks import statement_problems
from protocol.scope_ledger import ScopeItem, Statement

PAGE = "# Tea\n\n## Green\n\nSome words here.\n\n## Black\n\nMore words.\n\n## White\n\nThe end.\n"
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |\n"
HONEST = [
    ("Write output/a.md with exactly 3 sections.", {"output/a.md": PAGE}),
    ("Write output/a.md with at most 3 sections.", {"output/a.md": PAGE}),
    ("Write a table with exactly 3 rows to output/t.md.", {"output/t.md": TABLE}),
    ("Write output/t.csv with exactly 2 rows.", {"output/t.csv": "a,b\n1,2\n3,4\n"}),
    ("Write output/s.md with exactly 4 words.", {"output/s.md": "# Sum\n\nAll teas are good.\n"}),
    ("Write output/p.md with exactly 5 lines.", {"output/p.md": "one\n\ntwo\n\nthree\n"}),
    ('output/a.md must not contain a section "Draft".', {"output/a.md": PAGE}),
    ('Sum up the section "Scope" of documents/spec.md in output/a.md.', {"output/a.md": PAGE}),
    ('Write output/a.md with a section "Red" or "Green".', {"output/a.md": PAGE}),
    ("Write output/a.md with at most 4 words per section.", {"output/a.md": PAGE}),
    ("Write an abstract of at most 5 words into output/a.md.", {"output/a.md": PAGE}),
    ("If there are contradictions, list them in output/contradictions.md.", {}),
    ("Falls Fehler auftreten, schreibe sie nach output/fehler.md.", {}),
    ("Write output/a.md and, if you find errors, output/errors.md.", {"output/a.md": PAGE}),
    ("Write output/a.md or output/a.txt.", {"output/a.txt": PAGE}),
    ("Write output/tool.py, which shall write result.json when called.", {"output/tool.py": "1"}),
    ("Write output/a.md from the figures in sales.csv.", {"output/a.md": PAGE}),
    ("Write output/a.md that compares alpha.md with beta.md.", {"output/a.md": PAGE}),
    ("The app must show an error if settings.json is missing.", {}),
    ("List at least 2 entries in output/x.csv.", {"output/x.csv": "a,b\n1,2\n3,4\n"}),
    ("Remove the old draft files output/a.md, output/b.md and output/c.md.", {}),
    ("Rename output/a.md to output/b.md.", {"output/b.md": PAGE}),
    ("The file output/a.md must be removed at the end.", {}),
    ("Lösche die Datei output/a.md.", {}),
    ("Die Datei output/a.md muss am Ende entfernt werden.", {}),
    ("Write output/a.md, then move it to output/b.md.", {"output/b.md": PAGE}),
    ("Write output/a.md. Move output/a.md to output/b.md.", {"output/b.md": PAGE}),
    ("Write output/a.md. Write output/b.md from it. Delete output/a.md.", {"output/b.md": PAGE}),
    ("Schreibe output/a.md und benenne sie in output/b.md um.", {"output/b.md": PAGE}),
]
AMISS = [
    ("Write output/a.md with exactly 3 sections.", {"output/a.md": "# Tea\n\n## Green\n\nA.\n"}),
    ("Write output/a.md with at most 4 words.", {"output/a.md": PAGE}),
    ("Write output/s.md with at least 40 words.", {"output/s.md": PAGE}),
    ('Write output/a.md with a section "Red".', {"output/a.md": PAGE}),
    ("Write output/a.md.", {}),
    ("Write output/a.md.", {"output/a.md/x": "A folder of that name."}),
    ("Write output/a.md.", {"notes/output/a.md": "Put where nobody looks."}),
    ("Write output/a.md or output/a.txt.", {}),
    ("Write output/a.md, output/b.md and output/c.md.", {"output/a.md": "1", "output/b.md": "2"}),
    ("Write output/a.md with the code K1, and b.md with the code K2.", {"output/a.md": "K1"}),
    ("Write a report that is kept as output/a.md.", {}),
    ("Write output/a.md on how to remove stains.", {}),
    ("Write a guide on how to remove stains to output/a.md.", {}),
    ("Write how to drop a column: output/a.md.", {}),
    ("Rename output/a.md to output/b.md.", {}),
    ("Write output/a.md, then move it to output/b.md.", {"output/a.md": PAGE}),
    ("Write output/a.md. Never delete output/a.md.", {}),
    ("Write output/a.md, then output/b.md, and delete it.", {"output/b.md": PAGE}),
    ("Write output/t.csv with at least 9 rows.", {"output/t.csv": "a,b\n1,2\n3,4\n"}),
]


def problems(folder: Path, brief: str, contents: dict[str, str]) -> list[str]:
    files = Files.empty(open_checkpoints(Root.open(folder, create=True), "job", create=True).store)
    for path, text in contents.items():
        files = files.write(path, text.encode())
    stated = [
        Statement(text=each.text, paths=list(each.paths)) for each in brief_statements(brief, "x")
    ]
    assert stated
    return statement_problems(files, ScopeItem(id="B1", text=brief, statements=stated))


@pytest.mark.parametrize(("brief", "contents"), HONEST)
def test_honest_work_is_not_amiss(tmp_path: Path, brief: str, contents: dict[str, str]) -> None:
    assert problems(tmp_path, brief, contents) == []


@pytest.mark.parametrize(("brief", "contents"), AMISS)
def test_what_is_plainly_missing_is_found(
    tmp_path: Path, brief: str, contents: dict[str, str]
) -> None:
    assert problems(tmp_path, brief, contents)
