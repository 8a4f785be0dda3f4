"""`kill -9` of the worker while two validators work: each requirement is decided once."""

import asyncio
import json

from activities.checkpoints import Root
from activities.requirements.graph import open_graph
from activities.requirements.graph.interface import GraphQuery
from activities.stores.relational_store import RelationalStore
from config.agent_files import load_agent
from rehearsal import rehearse
from rehearsal.server import ModelServer
from tests.activities.mcp.serving import until
from tests.activities.stores.filling import fill, requirement, statuses
from tests.brief import BRIEFEST
from tests.crash.begun import Begun, Place

TEXTS = [
    "Invoices must be archived for ten years.",
    "The archive must never lose a delivery note.",
    "Passwords shall have twelve characters.",
    "Every payment must be approved by two people.",
]


async def test_nothing_is_doubled(begun: Begun) -> None:
    await begun(trial)


async def trial(place: Place) -> None:
    root = Root.open(place.folder / "root", create=True)
    store = RelationalStore(root, f"sqlite:///{root.path / '.longhaul' / 'store.sqlite3'}")
    fill(store, [requirement(n, text) for n, text in enumerate(TEXTS, 1)])

    def decided() -> int:
        return sum(status != "draft" for status in statuses(store).values())

    document = place.folder / "a.md"
    document.write_text("# Records\n\n" + "\n\n".join(TEXTS) + "\n")
    names = ["judges-1", "judges-2"]
    with ModelServer(rehearse) as model:
        where = (place.temporal.address, root.path, "judges", model.base_url)
        worker = place.workers.worker(*where)
        client = await place.temporal.client()
        handles = [
            await client.start_workflow(
                "Job",
                {
                    "agent": "validator",
                    "documents": [str(document)],
                    "set": {**BRIEFEST, "limits.max_todos": 2},
                },
                id=name,
                task_queue="judges",
                result_type=dict,
            )
            for name in names
        ]
        # One was just decided; the job that took it is amid its calls about the next.
        await asyncio.to_thread(until, decided, 90)
        worker.kill()
        place.workers.worker(*where)
        results = [await asyncio.wait_for(handle.result(), 150) for handle in handles]
    assert [result["status"] for result in results] == ["completed"] * 2
    assert set(statuses(store).values()) == {"accepted"}
    every = [entry["id"] for name in names for entry in told(root, name)]
    refs = [f"maker/REQ-{n:03d}" for n in range(1, len(TEXTS) + 1)]
    assert sorted(every) == refs
    with open_graph(root, load_agent("validator").graph_schema) as graph:
        nodes, relations = graph.read(
            GraphQuery("MATCH (r:Requirement) RETURN r.id ORDER BY r.id"),
            GraphQuery("MATCH (r:Requirement)-[:FULFILLED_BY]->(b) RETURN r.id ORDER BY r.id"),
        )
    assert nodes.rows == relations.rows == [[ref] for ref in refs]


def told(root: Root, name: str) -> list[dict[str, str]]:
    decisions: list[dict[str, str]] = json.loads(
        (root.workspace(name) / "output/decisions.json").read_text()
    )
    return decisions
