"""A typed result: the job ends when its file fits the schema, and the result includes it."""

import json
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from rehearsal.request_view import RequestView
from tests.workflows.serving import serving
from tests.workflows.short import DONE, MARKED, Call, Short, close, hand_over, job

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["grams"],
    "properties": {"grams": {"type": "number", "minimum": 1}, "kind": {"enum": ["green", "black"]}},
}


def write(value: object, path: str = "output/result.json") -> Call:
    return ("write_file", {"path": path, "content": json.dumps(value)})


async def test_a_job_ends_once_its_result_fits(temporal: Client, root: Root) -> None:
    closing = [MARKED, close()]
    model = Short(
        {
            "Mark": lambda view: [
                [*closing],
                [write({"kind": "white"}), close()],
                [write({"grams": 3, "kind": "green"}), close()],
            ][sum(made.tool == "job_complete" for made in view.calls)]
        }
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={"result_schema": SCHEMA}))
        result = await jobs.result(handle)
        snapshot = jobs.snapshot(handle, result["checkpoint"])
    assert result["status"] == "completed"
    assert result["result"]["path"] == "output/result.json"
    assert result["result"]["content"] == {"grams": 3, "kind": "green"}
    missing, unfit = model.refusals
    assert "There is no file output/result.json" in missing
    assert "tools/result_schema.json" in missing
    assert "'grams' is a required property" in unfit
    assert "$.kind: 'white' is not one of ['green', 'black']" in unfit
    assert json.loads(snapshot.read_text("tools/result_schema.json")) == SCHEMA
    instructions = snapshot.read_text("instructions.md")
    assert "`output/result.json` fits the JSON Schema" in instructions
    assert json.loads(instructions.split("```json\n")[1].split("\n```")[0]) == SCHEMA
    written = json.loads(snapshot.read_text("output/completion.json"))
    assert written["result"]["content"] == {"grams": 3, "kind": "green"}


async def test_a_large_result_is_named_and_not_carried(temporal: Client, root: Root) -> None:
    model = Short(
        {"Mark": lambda view: [MARKED, write(["x" * 100] * 1000, "output/a.json"), close()]}
    )
    settings = {"result_schema": {"type": "array"}, "result_path": "output/a.json"}
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start(job(set=settings)))
    assert result["result"]["content"] is None
    assert result["result"]["bytes"] > 100_000


async def test_a_schema_that_is_none_is_refused_at_the_start(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, Short()) as jobs:
        handle = await jobs.start(job(set={"result_schema": {"type": "numbr"}}))
        with pytest.raises(WorkflowFailureError) as failed:
            await jobs.result(handle)
    assert "result_schema: schema is not a JSON Schema: $.type" in str(failed.value.cause)


async def test_a_todo_is_done_once_its_file_fits(temporal: Client, root: Root) -> None:
    condition = {"valid": {"path": "output/tea.yaml", "schema": SCHEMA}}
    refusals: list[str] = []

    def work(view: RequestView) -> list[Call]:
        refusals.extend([view.refusal] if view.refusal else [])
        grams = "3" if refusals else "0"
        return [("write_file", {"path": "output/tea.yaml", "content": f"grams: {grams}\n"}), DONE]

    model = Short({"Hand": [hand_over({"done_when": condition}), DONE], "Work": work})
    model.verbs["Mark"] = lambda view: [MARKED, close("output/tea.yaml")]
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start(job()))
    assert result["status"] == "completed"
    assert "done when output/tea.yaml fits its schema" in refusals[0]
    assert "$.grams: 0 is less than the minimum of 1" in refusals[0]
