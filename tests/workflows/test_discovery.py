"""A job with more tools than are offered: the model finds the one it needs and uses it."""

from collections.abc import Iterator

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.toolkit.registry import select_registered_tools
from rehearsal import Script, call, rehearse
from rehearsal.request_view import parse_request_view, request_message_text
from rehearsal.wire import Answer, Request
from tests.activities.tools.plenty import GROUPS, plenty
from tests.workflows.serving import serving
from tests.workflows.tea import in_phase, tea

START = tea(set={"tools": GROUPS})
WANTED = "export_invoices"


@pytest.fixture
def office() -> Iterator[list[str]]:
    with plenty() as names:
        yield names


class Needing:
    """The rehearsal model, beginning the first tactical phase with a tool it was not offered."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.offered: dict[int, list[frozenset[str]]] = {}
        self.prompts: dict[int, set[str]] = {}

    def __call__(self, request: Request) -> Answer:
        if not request.get("tools"):
            return rehearse(request)
        view = parse_request_view(request)
        self.offered.setdefault(view.number, []).append(view.tools)
        self.prompts.setdefault(view.number, set()).add(view.system)
        if view.number != 2 or len(self.told) == 4:
            return rehearse(request)
        self.told.append(request_message_text(request["messages"][-2]))
        replies = [
            call(WANTED, since="yesterday"),
            call("search_tools", query="exporting an invoice"),
            call(WANTED, since="2024-01-01"),
        ]
        return replies[len(self.told) - 1] if len(self.told) < 4 else rehearse(request)


async def test_called_wrongly_then_found_then_used(
    temporal: Client, root: Root, office: list[str]
) -> None:
    model = Needing()
    # So few events that the first tactical phase takes several runs.
    limited = tea(set={"tools": GROUPS, "limits.history_events": 100, "limits.min_todos": 5})
    with Script(model) as script:
        async with serving(temporal, root, script) as jobs:
            handle = await jobs.start(limited)
            await jobs.until(handle, phase=in_phase(4))
            await handle.signal("cancel", {})
    described = await jobs.client.get_workflow_handle(handle.id).describe()
    assert described.run_id != handle.first_execution_run_id

    _, refused, search_answer, used = model.told
    assert f'search_tools("{WANTED}") shows its arguments' in refused
    assert search_answer.startswith(f"Callable from your next turn on: {WANTED}")
    assert used == "Wrote output/invoices.csv."
    assert (jobs.folder(handle) / "output" / "invoices.csv").is_file()

    core, first = model.offered[2][0], model.offered[2]
    assert "search_tools" in core
    # A phase begins with the few that its list needs by its words.
    assert len(core & set(office)) <= 5
    assert [WANTED in tools for tools in first[:3]] == [False, False, True]
    assert all(tools == first[2] for tools in first[3:])
    # What was found is not at hand in the next phase.
    assert all(len(tools & set(office)) <= 5 for tools in model.offered[3])
    assert all(len(prompts) == 1 for prompts in model.prompts.values())
    assert f"- `{WANTED}`: " in model.prompts[2].pop()

    pages = {page.stem for page in (jobs.folder(handle) / "tools").iterdir()}
    assert pages == {entry.name for entry in select_registered_tools([*GROUPS, "search_tools"])}


async def test_an_unknown_tool_is_answered_in_a_few_lines(
    temporal: Client, root: Root, office: list[str]
) -> None:
    answers: list[str] = []

    def model(request: Request) -> Answer:
        if request.get("tools") and len(answers) < 2:
            answers.append(request_message_text(request["messages"][-2]))
            return call("crystal_ball")
        return rehearse(request)

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(START)
        await jobs.until(handle, step=lambda step: step > 2)
        await handle.terminate()
    assert "There is no tool 'crystal_ball'" in answers[1]
    assert "more, each with a page in tools/" in answers[1]
    assert len(answers[1]) < 1000
