"""What code checks of a statement: it finds what is plainly amiss, and refuses no honest work."""

import re
from pathlib import Path

import pytest

from activities.checkpoints import Files, Root, open_checkpoints
from activities.job.brief_statements import brief_statements
from activities.job.statement_checks import statement_problems
from protocol.scope_ledger import ScopeItem, Statement

PAGE = "# Tea\n\n## Green\n\nSome words here.\n\n## Black\n\nMore words.\n\n## White\n\nThe end.\n"
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |\n"
HONEST = [
    ("Write output/a.md. The file output/b.md must not exist.", {"output/a.md": PAGE}),
    ("Write output/a.md, ggf. output/b.md.", {"output/a.md": PAGE}),
    ("Write output/a.md and output/b.md (optional).", {"output/a.md": PAGE}),
    ("Write a page for each land to output/, such as output/france.md.", {"output/a.md": PAGE}),
    ("Write output/a.md with exactly 3 sections.", {"output/a.md": PAGE}),
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
    ("Write output/a.md, and output/errors.md only when some were found.", {"output/a.md": PAGE}),
    ("Schreibe output/a.md und output/b.md, falls es Fehler gibt.", {}),
    ("Write output/a_1.md to output/a_7.md, except for Sunday's.", {"output/a_1.md": PAGE}),
    ("Write output/a.py, which makes b.csv and logs to b.log.", {"output/a.py": "1"}),
    ("Write output/a.py. It should read in.json and write out.json.", {"output/a.py": "1"}),
    ("Write output/a.md or output/a.txt.", {"output/a.txt": PAGE}),
    ("Write output/tool.py, which shall write result.json when called.", {"output/tool.py": "1"}),
    ("Write output/a.md from the figures in sales.csv.", {"output/a.md": PAGE}),
    ("Write output/a.md that compares alpha.md with beta.md.", {"output/a.md": PAGE}),
    ("The app must show an error if settings.json is missing.", {}),
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
    ("Write output/s.md with at least 40 words.", {"output/s.md": PAGE}),
    ('Write output/a.md with a section "Red".', {"output/a.md": PAGE}),
    ("Write output/a.md.", {}),
    ("Write output/a.md.", {"output/a.md/x": "A folder of that name."}),
    ("Write output/a.md.", {"notes/output/a.md": "Put where nobody looks."}),
    ("Write output/a.md or output/a.txt.", {}),
    ("Write output/a.md, and output/errors.md if there are any.", {"output/errors.md": "No."}),
    ("Read the notes and write it to summary.md.", {}),
    ("List all teas except green ones in output/a.md.", {}),
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


POEMS = {f"output/poems/{n}/poem.md": f"Tea {n}." for n in range(15)}
FIVE = [f"output/x/{n}.txt" for n in range(5)]
FACTS = {f"output/fact_{n:02}.md": f"Tea {n}." for n in range(1, 16)}
WORDS = " ".join(f"word{n}" for n in range(170))
BIG_TABLE = TABLE + "| 7 | 8 |\n" * 7 + "\nMore prose | here.\n"
QUOTED = '\ufeffid;text\r\n1;"a\nb"\r\n2;"c\nd"\r\n3;e\r\n'
TERMS = "".join(f"## Term {n}\n\n- is\n- has\n\n" for n in range(5))
BOLD_TERMS = "".join(f"**Term {n}**: is one.\n\n" for n in range(5)) + "- see also\n"
CHINESE = "茶是一种非常受欢迎的饮料, 世界各地的人们都喜欢喝茶。"
ROWS = "<table>" + "<tr><td>a</td></tr>" * 3 + "</table>"
IN_FOLDER = "Write 15 poems, each as its own file in output/poems/."
IN_RANGE = "Write 15 files output/fact_01.md to output/fact_15.md."
HEADINGS = 'Write output/a.md with the sections "Costs" and "Risks".'
COUNTED = [
    ("Write output/a.md of at least 20 words in Chinese.", {"output/a.md": CHINESE}),
    ("Write a glossary output/a.md with exactly 5 entries.", {"output/a.md": TERMS}),
    ("Write a glossary output/a.md with at least 5 entries.", {"output/a.md": BOLD_TERMS}),
    ("Write output/a.html with a table of at least 3 rows.", {"output/a.html": ROWS}),
    ("Write output/a.html with 9 rows.", {"output/a.html": "<p>1</p><script>show(9)</script>"}),
    ("Write output/a.yaml with at least 5 rows.", {"output/a.yaml": "[1, 2, 3, !Ref 4, 5]\n"}),
    (
        "Write output/a.json with 6 rows.",
        {"output/a.json": '{"tea": [1, 2, 3], "milk": [4, 5, 6]}'},
    ),
    ("Write output/a.md with a table of ten rows.", {"output/a.md": BIG_TABLE}),
    ("Write output/a.md with about 10 rows.", {"output/a.md": TABLE}),
    ("Write an analysis of 50 rows of documents/a.csv to output/a.md.", {"output/a.md": PAGE}),
    ("Write output/a.csv with exactly 3 rows.", {"output/a.csv": QUOTED}),
    ("Write output/a.csv with exactly 3 rows.", {"output/a.csv": "1,2\n3,4\n5,6\n"}),
    ("Write a 200-word essay to output/a.md.", {"output/a.md": WORDS}),
    ("Write a critique of a 500-word essay to output/a.md.", {"output/a.md": PAGE}),
    ("Write a 10 to 200 word summary to output/a.md.", {"output/a.md": PAGE}),
    ("Write a list with 3 entries to output/a.md.", {"output/a.md": "Tea, milk, water.\n"}),
    ("Write output/a.txt of at least 200 words: tea, repeated.", {"output/a.txt": "tea " * 200}),
    ("Write three poems of at least 20 words to output/poems/.", POEMS),
    (IN_FOLDER, POEMS),
    ("Write up to 20 poems, each as its own file in output/poems/.", POEMS),
    (IN_RANGE, FACTS),
    ("Write output/v_1.md to output/v_4.md.", {"output/v_1.md": "1", "output/v_4.md": "4"}),
    (HEADINGS, {"output/a.md": "# 1. Costs\n\nTODO: ask.\n\n**Risks:** none\n"}),
    ("Write a template with TODO below headings to output/a.md.", {"output/a.md": "# A\n\nTODO\n"}),
    (
        "Save these instructions as output/a.md.",
        {"output/a.md": "Save these instructions as output/a.md"},
    ),
    ('Summarize section "Setup" from documents/a.md in output/a.md.', {"output/a.md": PAGE}),
    ('Write output/a.md with the section "Draft" removed.', {"output/a.md": PAGE}),
    ('Write output/a.md with a section "Errors" if there are any.', {"output/a.md": PAGE}),
    (
        'Write output/a.html with sections "Costs & Risks" and "Überblick".',
        {"output/a.html": "<h1>Costs &amp;\nRisks</h1><h1>U\u0308berblick</h1>"},
    ),
    ("Write 5 files in output/x/, each containing 'tea'.", dict.fromkeys(FIVE, "tea\n")),
    ("Erstelle 5 Dateien in output/x/ mit gleichem Inhalt.", dict.fromkeys(FIVE, "Tee.")),
    (
        "Rename all files output/a_1.md to output/a_3.md into output/b_1.md to output/b_3.md.",
        {f"output/b_{n}.md": f"Tea {n}." for n in (1, 2, 3)},
    ),
    ("Write errors to output/e.txt; leave it empty if there are none.", {"output/e.txt": ""}),
    ("Create src/tea/__init__.py.", {"src/tea/__init__.py": ""}),
]
POEM = "The Sea\nby Ann\n\n" + "A line of it.\n" * 14 + "\nA. L., 2024\n"
RECORDS = '[{"a": 1, "b": 2, "c": 3}, {"a": 4, "b": 5, "c": 6}]'
OF_OTHER_THINGS = [
    ("List customers that have at least 5 entries in output/a.md.", "Ann\n"),
    ("Write output/a.py to generate at least 100 lines.", "print(1)\n"),
    ("Generate a dataset of at least 90 rows and write its mean to output/a.csv.", "3.2\n"),
    ("Write a review of the article in output/a.md with at least 500 words.", PAGE),
    ("Write a list of files with at least 100 lines to output/a.md.", PAGE),
    ("Create a schema in output/a.json with at least 3 entries in tags.", '{"minItems": 3}'),
    ("Write output/a.md with at most 2 words of introduction.", WORDS),
    ("Write output/a.md, 500 words at the most.", WORDS),
    ("Write output/a.md (500 words). That is the ceiling.", WORDS),
    ("Write output/a.csv with 20 rows. If there are fewer, take all.", "a,b\n1,2\n"),
    ("Write output/a.csv with at least 20 rows where possible.", "a,b\n1,2\n"),
    ("Write output/a.csv with exactly 2 rows. Add the total.", "a,b\n1,2\n3,4\n4,6\n"),
    ("Write output/a.md with exactly 14 lines.", POEM),
    ("Write a haiku of 3 lines to output/a.md.", "Old pond / a frog leaps in / water's sound\n"),
    ("Write output/a.md with four sections.", "<h2>A</h2>x<h2>B</h2>y<h2>C</h2>z<h2>D</h2>"),
    ("Write output/a.md with 3 rows.", "<table><tr><td>1<tr><td>2<tr><td>3</table>"),
    ("Write a form with 10 rows to output/a.csv.", "name,age\n" + ",\n" * 10),
    ("Schreibe output/a.md mit drei Abschnitten.", "Tee.\n\nMilch.\n\nWasser.\n"),
    ("Schreibe output/a.csv mit genau 2 Zeilen.", "a,b\n1,2\n3,4\n"),
    ("Schreibe output/a.md mit mindestens 90 Wörtern, sofern der Stoff reicht.", PAGE),
    ("Write output/a.json. It must be malformed.", "{a: 1, b"),
    ("Write output/a.pdf with at least 90 lines.", "%PDF-1.4\n"),
]
MISCOUNTED = [
    ("At least 90 words in output/a.md.", {"output/a.md": PAGE}),
    ("Write at least 90 words on tea to output/a.md.", {"output/a.md": PAGE}),
    ("Die Datei output/a.md soll mindestens 1.000 Wörter enthalten.", {"output/a.md": WORDS}),
    ("Erstelle eine Tabelle mit 20 Zeilen in output/a.csv.", {"output/a.csv": "a,b\n1,2\n"}),
    ("Write output/a.json with exactly 5 entries.", {"output/a.json": RECORDS}),
    ("Write output/a.md with at most 90 words.", {"output/a.md": WORDS}),
    ("Write output/a.txt with at most 9 lines.", {"output/a.txt": POEM}),
    ("Write output/a.csv with 10 rows.", {"output/a.csv": "a,b\n1,2\n"}),
    ("Write output/a.csv with at least 10 rows.", {"output/a.csv": "a,b\n" + "1,2\n" * 10}),
    ("Write output/a.md with a table of ten rows.", {"output/a.md": "A table.\n"}),
    ("Write a table of ten rows to output/a.md.", {"output/a.md": TABLE}),
    ("Write output/a.json with 5 entries.", {"output/a.json": "[1, 2]"}),
    ("Write output/a.yaml with 5 entries.", {"output/a.yaml": "- 1\n- 2\n"}),
    ("Write output/a.html with 5 rows.", {"output/a.html": ROWS}),
    ("Write a 200-word essay to output/a.md.", {"output/a.md": "Tea."}),
    ("Write output/a.md: a 200-word essay.", {"output/a.md": PAGE}),
    ("Write output/a.md of at least 90 words in Chinese.", {"output/a.md": CHINESE}),
    ("Write output/a.md of at least 200 words.", {"output/a.md": "tea " * 200}),
    (IN_FOLDER, {"output/poems/1.md": "Tea."}),
    (IN_FOLDER, dict.fromkeys(POEMS, "Tea.")),
    (IN_RANGE, {"output/fact_01.md": "Tea.", "output/fact_15.md": "Tea."}),
    (IN_RANGE, {f"output/fact_{n:02}.md": "Tea." for n in range(1, 16)}),
    (HEADINGS, {"output/a.md": "# Costs\n\nMany.\n"}),
    (HEADINGS, {"output/a.md": "# Costs\n\nTODO\n\n# Risks\n\nTBD\n"}),
    ("Write a story to output/a.md.", {"output/a.md": "Write a story\nto output/a.md.\n"}),
    ("Write report.md.", {"tools/report.md": "Tea."}),
    (
        'Write a report with sections "Costs" and "Plan" to output/a.md.',
        {"output/a.md": "# Costs\n\nTea."},
    ),
    ("Create src/tea/__init__.py.", {"src/tea/init.py": "x = 1"}),
]


def problems(folder: Path, brief: str, contents: dict[str, str]) -> list[str]:
    files = Files.empty(open_checkpoints(Root.open(folder, create=True), "job", create=True).store)
    for path, text in {"instructions.md": brief, **contents}.items():
        files = files.write(path, text.encode())
    stated = [
        Statement(text=each.text, paths=list(each.paths)) for each in brief_statements(brief, "x")
    ]
    assert stated
    return statement_problems(files, ScopeItem(id="B1", text=brief, statements=stated))


@pytest.mark.parametrize(("brief", "contents"), [*HONEST, *COUNTED])
def test_honest_work_is_not_amiss(tmp_path: Path, brief: str, contents: dict[str, str]) -> None:
    assert problems(tmp_path, brief, contents) == []


@pytest.mark.parametrize(("brief", "contents"), [*AMISS, *MISCOUNTED])
def test_what_is_plainly_missing_is_found(
    tmp_path: Path, brief: str, contents: dict[str, str]
) -> None:
    assert problems(tmp_path, brief, contents)


@pytest.mark.parametrize(("brief", "text"), OF_OTHER_THINGS)
def test_a_number_that_is_not_plainly_of_the_file_refuses_nothing(
    tmp_path: Path, brief: str, text: str
) -> None:
    path = re.findall(r"output/a\.\w+", brief)[0]
    assert problems(tmp_path, brief, {path: text}) == []
