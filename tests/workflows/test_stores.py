"""Jobs and the store: an outage loses nothing, and undone work leaves nothing behind."""

from collections.abc import Sequence

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.stores.relational_store import RelationalStore
from rehearsal.request_view import RequestView
from tests.activities.stores.filling import list_job_requirements
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Call, Short, close, job

LAW = "Every invoice must be kept for ten years."
START = job(
    set={
        "tools": ["files", "todos", "job", "documents", "requirements", "citations"],
        "limits.tools_offered": 60,
    }
)
ADDING: list[Call] = [
    ("write_file", {"path": "output/tea.md", "content": LAW}),
    ("cite_document", {"path": "output/tea.md", "page": 1, "quote": LAW}),
    (
        "add_requirement",
        {
            "text": LAW, "type": "legal", "citations": ["CIT-0001"], "reasoning": "It says so.",
            "confidence": 0.9,
        },
    ),
]  # fmt: skip


def stored(root: Root, job_id: str) -> list[str]:
    return [
        row.text for row in RelationalStore(root).run(lambda c: list_job_requirements(c, job_id))
    ]


async def test_a_job_goes_on_without_its_store_and_ends_once_it_has_everything(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", "postgresql://127.0.0.1:1/db")

    model = Short({"Work": [*ADDING, DONE], "Close": [close("output/tea.md")]})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        waiting = (await jobs.until(handle, waiting_for="dependency"))["waiting"]
        assert "does not answer" in waiting["message"]
        assert "resume" in waiting["remedy"]
        monkeypatch.delenv("LONGHAUL_STORE_URL", raising=False)
        await handle.signal("resume", {})
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        assert model.refusals == []
        assert stored(root, handle.id) == [LAW]
        assert jobs.snapshot(handle, result["checkpoint"]).state.deferred_writes == []


async def test_a_rewind_takes_what_it_undid_out_of_the_store(temporal: Client, root: Root) -> None:
    question: Call = ("request_clarification", {"question": "Black?", "default": "Yes."})
    rewound: list[bool] = []

    def work(view: RequestView) -> Sequence[Call]:
        if rewound:
            return [("write_file", {"path": "output/tea.md", "content": "tea"}), DONE]
        return [[*ADDING, question][view.replies]]

    def rethink(view: RequestView) -> Sequence[Call]:
        stored_rows.append(stored(root, "undone"))
        return [DONE]

    stored_rows: list[list[str]] = []
    model = Short({"Work": work, "Rethink": rethink})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START, job_id="undone")
        await jobs.until(handle, waiting_for="clarification")
        assert stored(root, handle.id) == [LAW]
        rewound.append(True)
        await handle.signal("rewind", {"issue": "Not that.", "phase": 2})
        assert (await jobs.result(handle))["status"] == "completed"
        # Already at the first reply after the rewind, not only at the end.
        assert stored_rows == [[]]
