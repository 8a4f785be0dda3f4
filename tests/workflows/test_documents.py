"""`creator` on other people's documents: requirements cite the page they are on."""

import json
from collections.abc import Callable
from pathlib import Path

from temporalio.client import Client

from activities.checkpoints import Root
from activities.documents.quotes import contains_quote
from activities.stores.relational_store import RelationalStore
from rehearsal.request_view import RequestView
from tests.activities.stores.filling import list_job_requirements
from tests.brief import BRIEFEST
from tests.document_pages import read_document_pages
from tests.soak import soak
from tests.workflows.resting import Resting
from tests.workflows.serving import serving

PDF = "pypdf-7.1.0/resources/Seige_of_Vicksburg_Sample_OCR-crazyones-merged.pdf"
DOCX = "python_docx-1.2.0/features/steps/test_files/sct-first-page-hdrftr.docx"
MARKDOWN = "pypdf-7.1.0/CHANGELOG.md"
NEWEST = soak(8_000, 20_000)


def once_listed(view: RequestView) -> bool:
    """Return whether all requirements are in one file."""
    return view.current_todo is not None and view.current_todo.text.startswith(
        "Check `output/requirements."
    )


async def test_requirements_from_pdf_docx_and_markdown_cite_the_right_pages(
    temporal: Client, root: Root, real: Callable[[str], bytes], tmp_path: Path
) -> None:
    paths = [tmp_path / Path(source).name for source in (PDF, DOCX, MARKDOWN)]
    for path, source in zip(paths, (PDF, DOCX, MARKDOWN), strict=True):
        content = real(source)
        # Of the list of changes only the newest: there are hundreds of candidates in all.
        path.write_bytes(content[:NEWEST] if source == MARKDOWN else content)
    documents = [str(path) for path in paths]
    # So few that the model has to search for the others.
    settings = {**BRIEFEST, "settings.confidence_threshold": 0.7, "limits.tools_offered": 12}
    async with serving(temporal, root, Resting(once_listed)) as jobs:
        handle = await jobs.start({"agent": "creator", "documents": documents, "set": settings})
        status = await jobs.until(handle, waits_until=bool)
        await handle.signal("cancel", {})
    left = jobs.snapshot(handle, status["checkpoint"])
    requirements = [
        json.loads(left.read_text(entry.path))
        for entry in left.files.walk("requirements")
        if entry.path.endswith("/final.json")
    ]
    sources = {requirement["source"] for requirement in requirements}
    assert {f"documents/{Path(PDF).name}", f"documents/{Path(MARKDOWN).name}"} <= sources
    # Compared with a new reading of the files, not with the text that the job stored.
    pages = {
        f"documents/{path.name}": {
            page.number: page.text for page in read_document_pages(path.name, path.read_bytes())
        }
        for path in paths
    }
    cited = [citation for requirement in requirements for citation in requirement["citations"]]
    assert len(cited) >= len(requirements) > 10
    for citation in cited:
        page = pages[citation["document"]][citation["page"]]
        assert contains_quote(page, citation["quote"])
    assert len({c["page"] for c in cited if c["document"].endswith(".pdf")}) > 3
    assert len(json.loads(left.read_text("output/requirements.json"))) == len(requirements)
    stored = RelationalStore(root).run(
        lambda connection: list_job_requirements(connection, handle.id)
    )
    assert [json.loads(row.final_json) for row in stored] == requirements
    # The text of each is stored beside it, with page marks.
    text = left.read_text(f"documents/{Path(DOCX).name}.txt")
    assert text.startswith("[page 1]\n")
    assert "[page 2]\n" in text
