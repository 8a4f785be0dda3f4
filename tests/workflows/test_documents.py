"""`creator` on documents that nobody here wrote: requirements cite the page they are on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from activities.documents import contains_quote, extract
from activities.stores import requirements as rows
from activities.stores.engine import Store
from tests.brief import BRIEFEST
from tests.workflows.serving import Jobs

PDF = "pypdf-7.1.0/resources/Seige_of_Vicksburg_Sample_OCR-crazyones-merged.pdf"
DOCX = "python_docx-1.2.0/features/steps/test_files/sct-first-page-hdrftr.docx"
MARKDOWN = "pypdf-7.1.0/CHANGELOG.md"


async def test_requirements_from_pdf_docx_and_markdown_cite_the_right_pages(
    jobs: Jobs, real: Callable[[str], bytes], tmp_path: Path
) -> None:
    paths = [tmp_path / Path(source).name for source in (PDF, DOCX, MARKDOWN)]
    for path, source in zip(paths, (PDF, DOCX, MARKDOWN), strict=True):
        path.write_bytes(real(source))
    documents = [str(path) for path in paths]
    settings = {**BRIEFEST, "settings.confidence_threshold": 0.7}
    handle = await jobs.start({"agent": "creator", "documents": documents, "set": settings})
    result = await jobs.result(handle)
    assert result["status"] == "completed"
    folder = jobs.folder(handle)
    found = [
        json.loads(path.read_text()) for path in sorted(folder.glob("requirements/*/final.json"))
    ]
    sources = {requirement["source"] for requirement in found}
    assert {f"documents/{Path(PDF).name}", f"documents/{Path(MARKDOWN).name}"} <= sources
    # Checked against a fresh reading of the files, not against the text the job kept.
    pages = {
        f"documents/{path.name}": {
            page.number: page.text for page in extract(path.name, path.read_bytes())
        }
        for path in paths
    }
    cited = [citation for requirement in found for citation in requirement["citations"]]
    assert len(cited) >= len(found) > 10
    for citation in cited:
        page = pages[citation["document"]][citation["page"]]
        assert contains_quote(page, citation["quote"])
    assert len({c["page"] for c in cited if c["document"].endswith(".pdf")}) > 3
    listed = json.loads((folder / "output/requirements.json").read_text())
    assert len(listed) == len(found)
    stored = Store(jobs.root).run(lambda connection: rows.of_job(connection, handle.id))
    assert [json.loads(row.final_json) for row in stored] == found


async def test_text_lies_beside_each_document_with_its_page_marks(
    jobs: Jobs, real: Callable[[str], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "sections.docx"
    path.write_bytes(real(DOCX))
    handle = await jobs.start({"agent": "creator", "documents": [str(path)]})
    await jobs.until(handle, step=lambda step: step > 0)
    text = (jobs.folder(handle) / "documents/sections.docx.txt").read_text()
    assert text.startswith("[page 1]\n")
    assert "[page 2]\n" in text
    await handle.signal("cancel", {})
