import gzip
import io
import json
import zipfile
from pathlib import Path

import docx
import pytest

from activities.checkpoints import Files
from activities.job.deliverables import list_missing_deliverables, list_unnamed_deliverables
from activities.job.empty_content import empty_content_reason
from protocol.repository_link import RepositoryLink, RepositoryOrigin
from protocol.repository_start import RepositoryStart
from tests.activities.standing import Standing


def packed(**members: str) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), text)
    return held.getvalue()


def word(text: str) -> bytes:
    held = io.BytesIO()
    document = docx.Document()
    if text:
        document.add_paragraph(text)
    document.save(held)
    return held.getvalue()


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.md", b""), ("a.md", b"\n"), ("a.md", b"\xef\xbb\xbf"), ("a.md", b" \t\r\n\x0c"),
        ("a.md", "\u200b\u200d\u2060\ufeff\u00ad".encode()),
        ("a.md", "\ufe0f\u3164\u2800".encode()),
        ("a.md", b"\xff\xfe \x00\n\x00"), ("a.png", b"\0" * 5000), ("Makefile", b""), ("a.py", b""),
        ("a.md", b" " * 3_000_000), ("a.md", b"# Tea\n\n- TODO\n- tbd ...\n"), ("a.txt", b"...\n"),
        ("a.md", b"Lorem ipsum dolor sit amet.\n"), ("a.md", b"# TODO\n"),
        ("a.html", b"<!doctype html><html><head><title>Tea</title></head><body></body></html>"),
        ("a.zip", packed()), ("a.zip", packed(folder__="")), ("a.zip", packed(a="")),
        ("a.docx", word("")), ("a.docx", packed(word__document_xml="<w:t> </w:t>")),
        ("a.xlsx", packed(xl__worksheets__s1_xml="<sheetData></sheetData>")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_says_nothing_is_no_deliverable(path: str, content: bytes) -> None:
    assert empty_content_reason(path, content)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.md", b"7"), ("a.md", "\u8336".encode()), ("a.md", "\U0001f375".encode()),
        ("a.md", b" " * 1_000_001 + b"tea"), ("a.md", b"\xe4hnlich"),
        ("a.txt", b" " * 999_999 + "ä".encode()),
        ("a.md", "Tee".encode("utf-16")), ("a.png", b"\x89PNG\r\n\x1a\n\0\0"),
        ("a.json", b"[]"), ("a.yaml", b"a: []"), ("a.jsonl", b""), ("a.csv", b"id,name\n"),
        ("src/__init__.py", b""), (".gitkeep", b""), ("py.typed", b""), (".gitignore", b"*\n"),
        ("a.txt", b"+"), ("a.html", b"<p>Tea</p>"), ("a.html", b"<body><script src=a.js></script>"),
        ("a.html", b"<head><style>p {color: red}</style></head><body><p></p></body>"),
        ("a.zip", packed(a="tea")), ("a.zip", b"PK\x03\x04 damaged"), ("a.docx", word("Tea")),
        ("a.xlsx", packed(xl__worksheets__s1_xml="<c><f>1+2</f></c>")),
        ("a.docx", packed(word__document_xml="<w:p/>", word__header1_xml="<w:t>Tea</w:t>")),
        ("a.odt", packed(content_xml='<text:p text:style-name="P1">Tea</text:p>')),
        ("a.docx", packed(word__document_xml="<w:drawing/>", word__media__a="x")),
        ("a.gz", gzip.compress(b"tea")), ("Makefile", b"all:\n"), ("a.bin", b"\0\1\2\xff\xfe\0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_says_something_is_one(path: str, content: bytes) -> None:
    assert empty_content_reason(path, content) is None


@pytest.mark.parametrize(
    ("brief", "content", "refused"),
    [
        ("If there are none, leave the file empty.", b"", False),
        ("Gibt es keine, soll die Datei leer sein.", b"", False),
        ("Write a.md without empty lines.", b"", True),
        ("The file must not be left empty.", b"", True),
        ("Write a template.", b"# Tea\n\nTODO\n", False),
        ("Write the word TODO to a.md.", b"TODO", False),
        ("Replace each digit with 'xxx'.", b"xxx\n", False),
        ("Write to whom it concerns.", b"xxx\n", True),
        ("Write the sign for SOS.", b"... --- ...\n", False),
    ],
)
def test_a_brief_may_ask_for_little(brief: str, content: bytes, refused: bool) -> None:
    assert bool(empty_content_reason("a.md", content, brief)) is refused


TEA = "Tea is old and made of leaves that are picked by hand."


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    job = Standing.begin(tmp_path)
    job.write("documents/tea.md", TEA)
    return job


def missing(job: Standing, *paths: str) -> list[str]:
    return list_missing_deliverables(job.open(), list(paths))


def test_the_plan_is_a_result_only_if_the_brief_names_it(job: Standing) -> None:
    job.write("plan.md", "1. Tea.")
    assert missing(job, "plan.md") == [
        "plan.md: is a file of the job itself; name what the job made"
    ]
    job.write("instructions.md", "Leave the plan in plan.md.")
    assert not missing(job, "plan.md")


@pytest.mark.parametrize(
    ("brief", "text", "refused"),
    [
        (
            "Translate documents/tea.md and write it to output/tea.md.",
            TEA.upper().replace(" ", "\n"),
            True,
        ),
        ("Translate documents/tea.md and write it to output/tea.md.", "Tee ist alt.", False),
        ("Summarize documents/tea.md in output/tea.md.", "# Summary\n\n" + TEA, True),
        ("Fasse documents/tea.md in output/tea.md zusammen.", TEA, True),
        ("Translate all documents into German.", TEA, True),
        ("Translate all documents into German if needed.", TEA, False),
        ("Translate only the notes of documents/tea.md in output/tea.md.", TEA, False),
        ("Do not translate names. Format documents/tea.md.", TEA, False),
        ("Proofread documents/tea.md and write output/tea.md.", TEA, False),
        ("Save documents/tea.md as output/tea.md.", TEA, False),
        ("Write a story about tea that a leaf tells to output/tea.md.", None, True),
    ],
)
def test_an_input_is_refused_where_other_words_are_asked_for(
    job: Standing,
    brief: str,
    text: str | None,
    refused: bool,
) -> None:
    job.write("instructions.md", brief)
    job.write("output/tea.md", text or brief)
    assert bool(missing(job, "output/tea.md")) is refused
    assert bool(missing(job, "output")) is refused


def test_names_stay_as_they_are_in_any_language(job: Standing) -> None:
    job.write("documents/names.txt", "Berlin, Hamburg, Bonn")
    job.write("instructions.md", "Translate documents/names.txt to German: output/names.txt.")
    job.write("output/names.txt", "Berlin, Hamburg, Bonn")
    assert not missing(job, "output/names.txt")


def test_of_several_results_one_may_be_an_input(job: Standing) -> None:
    brief = "Summarise documents/tea.md in output/a.md, and hand it over as output/b.md."
    job.write("instructions.md", brief)
    job.write("output/a.md", "Old tea.")
    job.write("output/b.md", TEA)
    assert not missing(job, "output/a.md", "output/b.md")


def test_a_document_that_the_job_wrote_is_its_own(job: Standing) -> None:
    snapshot = job.open()
    before = snapshot.files
    for path in ("documents/new.md", "output/new.md"):
        snapshot.files = snapshot.files.write(path, b"Water is older.")
    snapshot.record_changes(before)
    job.commit = snapshot.save("new", 1)
    assert not missing(job, "documents/new.md", "output/new.md", "documents")


@pytest.fixture
def repository(job: Standing) -> Standing:
    snapshot = job.open()
    start = Files.empty(snapshot.files.store)
    for path in ("README.md", "src/tea.py", "src/water.py", "docs/a.md"):
        start = start.write(path, f"print('{path}')\n".encode())
    for entry in start.walk():
        snapshot.files = snapshot.files.write(f"repo/{entry.path}", start.read(entry.path))
    origin = RepositoryOrigin(
        source="tea", start=RepositoryStart(url="https://example.com/tea.git"), commit="a" * 40,
        file_count=4,
    )  # fmt: skip
    snapshot.repository = RepositoryLink(owner="job", tree=start.id, commit="a" * 40, origin=origin)
    job.commit = snapshot.save("repository", 1)
    return job


def unnamed(job: Standing, *paths: str, unresolved: list[str] | None = None) -> list[str]:
    return list_unnamed_deliverables(job.open(), paths, unresolved or [])


def test_a_job_that_made_or_was_asked_for_files_names_some(job: Standing) -> None:
    assert unnamed(job) == []
    job.call("write_file", path="output/tea.md", content="Tea.")
    job.call("write_file", path="notes/tea.md", content="Tea.")
    job.write("output/completion.json", "{}")
    assert unnamed(job) == ["output/tea.md (the job made it)"]
    assert unnamed(job, "output/tea.md") == []
    job.write("instructions.md", "# Tea\n\nRead a.csv.\nWrite output/tea.md and\nlist.md.\n")
    assert unnamed(job) == [
        "output/tea.md (the job made it)",
        "list.md (is asked for and missing, line 4 of instructions.md)",
    ]
    because = ["list.md: there was no source for it", "output/tea.md: a draft, not to be used"]
    assert unnamed(job, unresolved=because) == []
    job.call("delete_file", path="output/tea.md")
    job.write("instructions.md", "Which tea is oldest? Answer in the summary.")
    assert unnamed(job) == []


def test_a_job_on_a_repository_may_name_none(repository: Standing) -> None:
    repository.write("instructions.md", "Mend src/tea.py and write src/milk.py.")
    assert unnamed(repository) == []
    repository.call("write_file", path="output/tea.md", content=json.dumps("Tea"))
    assert unnamed(repository) == ["output/tea.md (the job made it)"]
