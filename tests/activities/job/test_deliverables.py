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
        ("a.md", b"\xff\xfe \x00\n\x00"), ("a.bin", b"\0" * 5000), ("a.md", b"---\n...\n- \n"),
        ("a.md", b" " * 3_000_000), ("a.txt", b"|||"),
        ("a.json", b"{}"), ("a.json", b"[]"), ("a.json", b"null"), ("a.json", b'[{}, [null, ""]]'),
        ("a.json", b'{"": null}'), ("a.jsonl", b"{}\n[]\n"), ("a.json", '"\u200b"'.encode()),
        ("a.yaml", b"# nothing yet\n---\n{}\n"), ("a.yml", b"null # todo"),
        ("a.csv", b",,,\n;;\n"), ("a.csv", b"id,name\n"), ("a.tsv", b"id\tname\r\n\r\n"),
        ("a.csv", b"\xef\xbb\xbfid;name"),
        ("a.html", b"<!doctype html><html><head><title>Tea</title></head><body></body></html>"),
        ("a.htm", b"<!-- Tea is good. --><p>&#8203;</p>".replace(b"&#8203;", b" ")),
        ("a.html", b"<!-- <b> " * 100_000), ("a.html", b"<head> <style> " * 60_000),
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
        ("a.json", b"0"), ("a.json", b"false"), ("a.json", b'{"violations": []}'),
        ("a.json", b'{"a": 1,}'), ("a.jsonl", b'{}\n{"a": 1}\n'), ("a.yaml", b"a: []"),
        ("a.csv", b"id,name\n1,tea\n"), ("a.csv", b"tea,12\n"), ("a.csv", b"tea\n"),
        ("a.csv", b"nothing was found\n"), ("a.html", b"<p>Tea</p>"),
        ("a.html", b"<img src=a.png>"), ("a.html", b"<head><title></title><body>Tea"),
        ("a.html", b"<body><script src=a.js></script></body>"),
        ("a.zip", packed(a="tea")), ("a.zip", b"PK\x03\x04 damaged"), ("a.docx", word("Tea")),
        ("a.xlsx", packed(xl__worksheets__s1_xml="<c><v>3</v></c>")),
        ("a.odt", packed(content_xml='<text:p text:style-name="P1">Tea</text:p>')),
        ("a.docx", packed(word__document_xml="<w:drawing/>", word__media__a="x")),
        ("a.gz", gzip.compress(b"tea")), ("Makefile", b"all:\n"), ("a.bin", b"\0\1\2\xff\xfe\0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_says_something_is_one(path: str, content: bytes) -> None:
    assert empty_content_reason(path, content) is None


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    job = Standing.begin(tmp_path)
    job.write("documents/tea.md", "Tea is old.")
    job.write("documents/tea.pdf.txt", "Tea is very old.")
    return job


def missing(job: Standing, *paths: str) -> list[str]:
    return list_missing_deliverables(job.open(), list(paths))


def test_an_input_is_not_handed_over_as_a_deliverable(job: Standing) -> None:
    job.write("output/copy.md", "Tea is old.")
    job.write("output/text.md", "Tea is very old.")
    job.write("output/own.md", "Tea is old. So is water.")
    job.write("copies/a.md", "Tea is old.")
    copied, text, document, folder = missing(
        job, "output/copy.md", "output/text.md", "documents/tea.md", "copies", "output"
    )
    assert "output/copy.md: is an unchanged copy of documents/tea.md; name what" in copied
    assert "copy of documents/tea.pdf.txt" in text
    assert "was there before the job and is unchanged" in document
    assert "copies: holds nothing of the job's own: copies/a.md is an unchanged copy" in folder
    assert not missing(job, "output/own.md")
    job.write("instructions.md", "Copy documents/tea.md to output/copy.md. Write output/own.md.")
    assert not missing(job, "output/copy.md", "output/own.md")


def test_a_translation_has_other_words(job: Standing) -> None:
    brief = "{} documents/tea.md and write it to output/tea.md."
    for text, refused in (("tea  is\nOLD.\n\n", True), ("Tee ist alt.", False)):
        job.write("output/tea.md", text)
        for verb in ("Translate", "Summarize"):
            job.write("instructions.md", brief.format(verb))
            assert bool(missing(job, "output/tea.md")) is refused
    job.write("instructions.md", brief.format("Format"))
    job.write("output/tea.md", "Tea is old.\n\n")
    assert not missing(job, "output/tea.md")
    job.write("output/tea.md", job.text("instructions.md"))
    assert "copy of instructions.md" in missing(job, "output/tea.md")[0]


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


def test_an_untouched_file_of_the_repository_is_no_deliverable(repository: Standing) -> None:
    job = repository
    for path in ("repo/README.md", "repo", "repo/src", "repo/docs"):
        [why] = missing(job, path)
        assert "unchanged" in why, path
    job.write("output/README.md", "print('README.md')\n")
    assert "copy of repo/README.md" in missing(job, "output/README.md")[0]
    job.write("repo/src/tea.py", "print('more')\n")
    assert not missing(job, "repo", "repo/src", "repo/src/tea.py")
    assert missing(job, "repo/docs")
    job.write("repo/notes/new.md", "New.")
    assert not missing(job, "repo/notes", "repo/notes/new.md")


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
