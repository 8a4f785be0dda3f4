"""From a public document to the graph: `creator`, then two validators at once."""

import asyncio
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdf
import pytest
from sqlalchemy import select
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from activities.documents.quotes import contains_quote
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.requirements.graph import open_graph
from activities.requirements.graph.interface import GraphQuery
from activities.stores.relational_store import RelationalStore
from activities.stores.schema import REQUIREMENTS
from cli.start.start_files import project_input
from config.agent_files import load_agent
from rehearsal import rehearse
from rehearsal.request_view import RequestView
from tests.activities.requirements.graph.serving import Server
from tests.activities.stores.filling import fill, list_job_requirements, requirement
from tests.brief import BRIEFEST
from tests.document_pages import read_document_pages
from tests.soak import SOAK, soak
from tests.workflows.resting import Resting
from tests.workflows.serving import Jobs, serving

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCE = "pypdf-7.1.0/resources/issue-604.pdf"
PAGES = soak(slice(87, 91), slice(84, 120))
FOUND = soak(3, 9)
"""Number of requirements on these pages."""
SET = {**BRIEFEST, "settings.confidence_threshold": 0.7}
JUDGES = {**SET, "limits.max_todos": 2}
"""For validators: short rounds, as there is little to decide."""


@pytest.fixture(scope="module")
def document(real: Callable[[str], bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return some of its pages: all 137 take long to read."""
    writer = pypdf.PdfWriter()
    for page in pypdf.PdfReader(io.BytesIO(real(SOURCE))).pages[PAGES]:
        writer.add_page(page)
    path = tmp_path_factory.mktemp("document") / "guidelines.pdf"
    writer.write(path)
    return path


def rows_of(store: RelationalStore) -> dict[str, Any]:
    rows = store.run(lambda connection: connection.execute(select(REQUIREMENTS)).all())
    return {f"{row.job}/{row.id}": row for row in rows}


def asked(root: Root, cypher: str) -> list[list[object]]:
    with open_graph(root, load_agent("validator").graph_schema) as graph:
        return graph.read(GraphQuery(cypher))[0].rows


def pages_of(document: Path) -> dict[int, str]:
    return {
        page.number: page.text for page in read_document_pages(document.name, document.read_bytes())
    }


def decisions(jobs: Jobs, job_id: str) -> list[dict[str, str]]:
    path = jobs.root.workspace(job_id) / "output/decisions.json"
    entries: list[dict[str, str]] = json.loads(path.read_text())
    return entries


@pytest.fixture
def store(
    request: pytest.FixtureRequest, root: Root, url: str, monkeypatch: pytest.MonkeyPatch
) -> RelationalStore:
    """The jobs' store; if it is in a server, the graph is in one too."""
    monkeypatch.setenv("LONGHAUL_STORE_URL", url)
    monkeypatch.delenv("LONGHAUL_GRAPH_URL", raising=False)
    if not url.startswith("sqlite"):
        server: Server = request.getfixturevalue("graph_server")
        server.empty()
        monkeypatch.setenv("LONGHAUL_GRAPH_URL", server.url)
    return RelationalStore(root, url)


def once_listed(view: RequestView) -> bool:
    """Return whether all results are in one file, at the todo after that."""
    after = "Check `output/requirements.", "Note in `notes/method.md`"
    return view.current_todo is not None and view.current_todo.text.startswith(after)


async def until_listed(jobs: Jobs, start: dict[str, Any], count: int = 1) -> list[Any]:
    """Run jobs side by side, and end them once they have listed what they found or decided; the
    pipeline below runs them to the end.
    """
    handles = [await jobs.start(start) for _ in range(count)]
    for handle in handles:
        await jobs.until(handle, waits_until=bool)
        await handle.signal("cancel", {})
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)
    return handles


@pytest.mark.parametrize(
    "url",
    [
        # With the graph in a folder, like the pipeline below.
        pytest.param("sqlite", marks=pytest.mark.skipif(not SOAK, reason="make soak")),
        pytest.param("postgres", id="postgres-graph_server"),
    ],
    indirect=True,
)
async def test_each_requirement_is_decided_once_and_what_holds_is_in_the_graph(
    temporal: Client, root: Root, store: RelationalStore, document: Path
) -> None:
    async with serving(temporal, root, Resting(once_listed)) as jobs:
        job_input = {"documents": [str(document)]}
        [creator] = await until_listed(jobs, {"agent": "creator", **job_input, "set": SET})
        requirements = rows_of(store)
        original, row = next(iter(requirements.items()))
        planted = [
            requirement(1, row.text, job="zeta"),
            requirement(2, "The sky over the lake was blue that day.", job="zeta"),
        ]
        place = next(
            drafted.citations[0]
            for drafted in store.run(lambda c: list_job_requirements(c, creator.id))
            if drafted.ref == original
        )
        for twin, quote in zip(planted, (" ".join(row.text.split()[:-2]), ""), strict=True):
            # From the same document; the second says something that is not there.
            twin.citations = [place.model_copy(update={"quote": quote or twin.text})]
            twin.source = place.document
        fill(store, planted, job="zeta")

        judging = {"agent": "validator", **job_input, "set": JUDGES}
        validators = await until_listed(jobs, judging, 2)
    rows = rows_of(store)
    decided = {handle.id: decisions(jobs, handle.id) for handle in validators}
    every = [each["id"] for listed in decided.values() for each in listed]
    # Each decided once, by the validator that says so; the first may have taken all.
    assert sorted(every) == sorted(rows)
    assert len(rows) == len(requirements) + 2 == FOUND + 2
    for job_id, listed in decided.items():
        for each in listed:
            assert (rows[each["id"]].decided_by, rows[each["id"]].status) == (
                job_id,
                each["decision"],
            )
            assert rows[each["id"]].reasons == each["reasons"]
    assert (rows["zeta/REQ-001"].status, rows["zeta/REQ-001"].duplicate_of) == (
        "duplicate",
        original,
    )
    assert rows["zeta/REQ-002"].status == "rejected"
    # The citations are checked against a new reading of the document.
    pages = pages_of(document)
    assert len(pages) == PAGES.stop - PAGES.start
    cited = [
        each
        for drafted in store.run(lambda connection: list_job_requirements(connection, creator.id))
        for each in drafted.citations
    ]
    assert len(cited) >= len(requirements)
    assert all(contains_quote(pages[each.page], each.quote) for each in cited)
    # The graph contains what was accepted, each node and relation once.
    accepted = sorted([ref] for ref, row in rows.items() if row.status == "accepted")
    assert len(accepted) >= FOUND * 2 / 3
    nodes = "MATCH (r:Requirement) RETURN r.id ORDER BY r.id"
    related = "MATCH (r:Requirement)-[:FULFILLED_BY]->(:BusinessObject) RETURN r.id ORDER BY r.id"
    for cypher in (nodes, related):
        assert await asyncio.to_thread(asked, root, cypher) == accepted


async def test_the_pipeline_of_the_examples_goes_from_a_document_to_the_graph(
    temporal: Client, root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LONGHAUL_GRAPH_URL", raising=False)
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(root.path))
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    policy = tmp_path / "examples/documents/records-policy.md"
    policy.write_text(policy.read_text().partition("6.4 ")[0])
    start_input = project_input(tmp_path / "examples/projects/pipeline.yaml")
    # Two of the hundred candidates in the policy, and the clauses that it numbers.
    start_input["set"] = {**SET, "settings.confidence_threshold": 0.97}
    final = ["Write output/decisions.md", "Call job_complete"]
    start_input["stages"][1]["set"] = {"limits.max_todos": 2, "todos.final": final}
    async with serving(temporal, root, rehearse) as jobs:
        handle = await jobs.start(start_input, kind="Project")
        result = await jobs.result(handle)
    assert result["status"] == "completed", result
    assert [unit["status"] for unit in result["units"]] == ["completed", "completed"]
    rows = rows_of(RelationalStore(root))
    assert len(rows) == 30
    assert {row.decided_by for row in rows.values()} == {f"{handle.id}.validate-validator-1"}
    accepted = sorted([ref] for ref, row in rows.items() if row.status == "accepted")
    assert asked(root, "MATCH (r:Requirement) RETURN r.id ORDER BY r.id") == accepted
    product = ProjectRepository(project_repository_path(root, handle.id))
    decisions_file = product.read_file(result["commit"], "decisions.json")
    assert decisions_file is not None
    # Each stage has its own report, and the second does not replace the first.
    for report, word in (("summary.md", b"document"), ("decisions.md", b"taken")):
        assert word in (product.read_file(result["commit"], report) or b"")
    assert sorted(entry["id"] for entry in json.loads(decisions_file)) == sorted(rows)
