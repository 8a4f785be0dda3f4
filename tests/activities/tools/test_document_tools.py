"""Document tools: nothing of a document is lost in chunks, nothing made up can be cited."""

import itertools
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from activities.documents.pages import Page, Quality, unread_page_placeholder
from activities.text import tokens
from activities.tools.document_tools import split_document_chunks
from tests.activities.standing import Standing

QUOTE = "Every invoice must be kept for ten years."


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    standing = Standing.begin(tmp_path, kind="tactical", agent="creator")
    standing.write("documents/a.md", QUOTE)
    standing.write("documents/a.md.txt", f"[page 1]\nIntroduction\n[page 2]\n{QUOTE}\n")
    return standing


@pytest.mark.parametrize(
    "text", ["\u66f8\u985e\u3092\u4fdd\u5b58" * 2000, "x1" * 20_000, "word " * 8000]
)
def test_chunks_hold_the_whole_document(job: Standing, text: str) -> None:
    job.write("documents/b.md.txt", f"[page 1]\n{text.strip()}\n")
    job.write("documents/b.md", text)
    job.call("chunk_document", path="documents/b.md", max_tokens=500, overlap=0)
    manifest = json.loads(job.text("chunks/b_md/manifest.json"))
    parts = [job.text(chunk["path"]) for chunk in manifest["chunks"]]
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert max(tokens.count_tokens(part) for part in parts) <= 500


def paged(count: int) -> str:
    """Return a document of so many pages, with two paragraphs of about 40 tokens on each."""
    words = " ".join(["obligation"] * 35)
    return "\n".join(f"[page {n}]\nA{n} {words}\n\nB{n} {words}\n" for n in range(1, count + 1))


def manifest_of(job: Standing, name: str) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(job.text(f"chunks/{name}/manifest.json"))
    return manifest


def test_chunks_name_their_pages_and_share_what_was_asked_for(job: Standing) -> None:
    job.write("documents/c.md", "c")
    job.write("documents/c.md.txt", paged(20))
    job.call("chunk_document", path="documents/c.md", max_tokens=200, overlap=60)
    manifest = manifest_of(job, "c_md")
    assert manifest["document"] == "documents/c.md"
    assert (manifest["max_tokens"], manifest["overlap"]) == (200, 60)
    texts = [job.text(chunk["path"]) for chunk in manifest["chunks"]]
    for chunk, text in zip(manifest["chunks"], texts, strict=True):
        assert chunk["pages"] == sorted({int(n) for n in re.findall(r"[AB](\d+) ", text)})
        assert chunk["tokens"] == tokens.count_tokens(text) <= 200
    for text, following in itertools.pairwise(texts):
        assert text.split("\n\n")[-1].strip() == following.split("\n\n")[0].strip()


def test_chunks_take_the_agents_sizes_and_replace_those_before(job: Standing) -> None:
    job.write("documents/c.md", "c")
    job.write("documents/c.md.txt", paged(100))
    job.call("chunk_document", path="documents/c.md", max_tokens=100, overlap=0)
    many = len(manifest_of(job, "c_md")["chunks"])
    job.call("chunk_document", path="documents/c.md")
    manifest = manifest_of(job, "c_md")
    assert (manifest["max_tokens"], manifest["overlap"]) == (1500, 150)
    assert len(manifest["chunks"]) < many
    chunk_paths = {path for path in job.paths() if path.startswith("chunks/")}
    named = {chunk["path"] for chunk in manifest["chunks"]}
    assert chunk_paths == named | {"chunks/c_md/manifest.json"}


def test_documents_of_one_name_keep_their_chunks_apart(job: Standing) -> None:
    for folder in ("one", "two"):
        job.write(f"documents/{folder}/c.md", f"Text {folder}.")
        job.call("chunk_document", path=f"documents/{folder}/c.md")
    assert "Text one." in job.text("chunks/one/c_md/chunk_001.md")
    assert "Text two." in job.text("chunks/two/c_md/chunk_001.md")


def test_chunking_takes_linear_time() -> None:
    def seconds(size: int) -> float:
        pages = [Page(1, "a few words of a very long paragraph " * size)]
        # Processor time, so that other work on the machine does not count.
        start = time.thread_time()
        assert split_document_chunks(pages, 8000, 4000)
        return time.thread_time() - start

    seconds(1000)
    short = min(seconds(4000) for _ in range(3))
    assert min(seconds(32_000) for _ in range(3)) < 20 * short


def test_a_citation_names_the_page_it_is_on(job: Standing) -> None:
    wrong = job.call("cite_document", path="documents/a.md", page=1, quote=QUOTE)
    assert "It stands on page 2" in wrong
    assert "there is no page 7" in job.call(
        "cite_document", path="documents/a.md", page=7, quote=QUOTE
    )
    assert job.call("cite_document", path="documents/a.md", page=2, quote=QUOTE).startswith(
        "citation CIT-0001"
    )


def test_a_citation_names_its_document_in_one_way(job: Standing) -> None:
    job.call("cite_document", path="documents/./a.md", page=2, quote=QUOTE)
    assert json.loads(job.text("citations/CIT-0001.json"))["document"] == "documents/a.md"


def test_the_text_of_a_document_stands_for_it(job: Standing) -> None:
    job.call("cite_document", path="documents/a.md.txt", page=2, quote=QUOTE)
    cited = json.loads(job.text("citations/CIT-0001.json"))
    assert (cited["document"], cited["page"]) == ("documents/a.md", 2)
    assert "There is no file" in job.call("extract_document_text", path="documents/a.md.txt.txt")


def test_pages_past_the_end_are_not_said_to_be_shown(job: Standing) -> None:
    answer = job.call("extract_document_text", path="documents/a.md", pages="2-999")
    assert answer.startswith("documents/a.md, page 2 of 2.")


def test_a_text_put_beside_a_file_proves_nothing(job: Standing) -> None:
    job.call("write_file", path="notes/law.md.txt", content=f"[page 1]\n{QUOTE}\n")
    assert "There is no file" in job.call("cite_document", path="notes/law.md", page=1, quote=QUOTE)
    job.call("write_file", path="notes/law.md", content="Something else.\n")
    assert "is not on page 1" in job.call("cite_document", path="notes/law.md", page=1, quote=QUOTE)


def test_a_requirement_needs_a_citation_that_was_made(job: Standing) -> None:
    fields: dict[str, Any] = {
        "text": "Invoices are kept for ten years.",
        "type": "legal",
        "reasoning": "It says so.",
        "confidence": 0.9,
    }
    for name in ("CIT-0001", "../a", "a\nb"):
        assert job.call("add_requirement", citations=[name], **fields).startswith("Error: ")
    job.call("cite_document", path="documents/a.md", page=2, quote=QUOTE)
    job.put(lambda files: files.make_folder("requirements/req_\u00b2"))
    answer = job.call("add_requirement", citations=["CIT-0001"], **fields)
    assert answer.startswith("REQ-001")
    assert json.loads(job.text("requirements/req_001/final.json"))["source"] == "documents/a.md"


def test_a_line_of_a_scan_is_found_in_the_text_beside(job: Standing) -> None:
    job.write("documents/scan.pdf", b"%PDF\xff")
    job.write("documents/scan.pdf.txt", "[page 1]\nWater is boiled.\n")
    assert job.call("search_files", query="boiled").startswith("documents/scan.pdf.txt:2: ")


def test_a_text_is_read_without_a_text_beside_it(job: Standing) -> None:
    job.write("documents/tea.md", "# Tea\n\n## Water\n\nWater must be boiled for tea.\n")
    answer = job.call("extract_document_text", path="documents/tea.md")
    assert "[page 1; section Tea; section Water]\n# Tea" in answer
    quote = "Water must be boiled for tea."
    cited = job.call("cite_document", path="documents/tea.md", page=1, quote=quote)
    assert not cited.startswith("Error")


def test_doubts_about_a_document_come_before_its_text(job: Standing) -> None:
    job.write("documents/b.pdf", "%PDF-")
    job.write("documents/b.pdf.txt", f"[page 1; label iv]\n{QUOTE}\n")
    doubts = Quality(["Words run together: page 1."], [1], is_unreliable=True)
    job.write("documents/b.pdf.reading.json", doubts.as_json())
    answer = job.call("extract_document_text", path="documents/b.pdf")
    assert answer.startswith("documents/b.pdf, page 1 of 1. Words run together: page 1. ")
    assert "[page 1; label iv]" in answer
    assert job.call("write_file", path="documents/b.pdf.reading.json", content="{}").startswith(
        "Error: "
    )


def test_every_answer_names_the_pages_that_could_not_be_read(job: Standing) -> None:
    job.write("documents/b.pdf", "%PDF-")
    why = unread_page_placeholder("A page must have contents")
    text = f"[page 1]\n{QUOTE}\n[page 2]\n{why}\n"
    job.write("documents/b.pdf.txt", text)
    for tool in ("extract_document_text", "chunk_document", "identify_requirement_candidates"):
        assert " Could not be read: page 2." in job.call(tool, path="documents/b.pdf")
    answer = job.call("cite_document", path="documents/b.pdf", page=2, quote=why)
    assert "page 2 could not be read" in answer
    # The text in its place asks nobody for anything.
    assert "contents" not in job.text("candidates/candidates.json")
