"""Document tools: nothing of a document is lost in chunks, nothing made up can be cited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from activities import tokens
from tests.activities.standing import Standing

QUOTE = "Every invoice must be kept for ten years."


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    made = Standing.begin(tmp_path, kind="tactical", agent="creator")
    made.write("documents/a.md", QUOTE)
    made.write("documents/a.md.txt", f"[page 1]\nIntroduction\n[page 2]\n{QUOTE}\n")
    return made


@pytest.mark.parametrize(
    "text", ["\u66f8\u985e\u3092\u4fdd\u5b58" * 2000, "x1" * 20_000, "word " * 8000]
)
def test_chunks_hold_the_whole_document(job: Standing, text: str) -> None:
    job.write("documents/b.md.txt", f"[page 1]\n{text.strip()}\n")
    job.write("documents/b.md", text)
    job.call("chunk_document", path="documents/b.md", max_tokens=500, overlap=0)
    manifest = json.loads(job.text("chunks/b.md/manifest.json"))
    parts = [job.text(chunk["path"]) for chunk in manifest["chunks"]]
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert max(tokens.count(part) for part in parts) <= 500


def test_a_citation_names_the_page_it_is_on(job: Standing) -> None:
    wrong = job.call("cite_document", path="documents/a.md", page=1, quote=QUOTE)
    assert "It stands on page 2" in wrong
    assert "there is no page 7" in job.call(
        "cite_document", path="documents/a.md", page=7, quote=QUOTE
    )
    assert job.call("cite_document", path="documents/a.md", page=2, quote=QUOTE).startswith(
        "citation CIT-0001"
    )


def test_a_text_put_beside_a_file_proves_nothing(job: Standing) -> None:
    job.call("write_file", path="notes/law.md.txt", content=f"[page 1]\n{QUOTE}\n")
    assert "There is no file" in job.call("cite_document", path="notes/law.md", page=1, quote=QUOTE)
    job.call("write_file", path="notes/law.md", content="Something else.\n")
    assert "is not on page 1" in job.call("cite_document", path="notes/law.md", page=1, quote=QUOTE)


def test_a_requirement_needs_a_citation_that_was_made(job: Standing) -> None:
    given: dict[str, Any] = {
        "text": "Invoices are kept for ten years.",
        "type": "legal",
        "reasoning": "It says so.",
        "confidence": 0.9,
    }
    for name in ("CIT-0001", "../a", "a\nb"):
        assert job.call("add_requirement", citations=[name], **given).startswith("Error: ")
    job.call("cite_document", path="documents/a.md", page=2, quote=QUOTE)
    job.put(lambda files: files.make_folder("requirements/req_\u00b2"))
    made = job.call("add_requirement", citations=["CIT-0001"], **given)
    assert made.startswith("REQ-001")
    assert json.loads(job.text("requirements/req_001/final.json"))["source"] == "documents/a.md"
