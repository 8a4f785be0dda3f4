"""What people do to a job, and how the job shows who did what and when."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.tools import file_search
from rehearsal import Request
from rehearsal.request_view import RequestView, parse_request_view
from rehearsal.wire import Answer, Stall
from tests.workflows.holding import Held
from tests.workflows.resting import at_todo
from tests.workflows.serving import serving
from tests.workflows.short import DONE, TEA, Call, Short, close, hand_over, job, plan

OOLONG = ("write_file", {"path": "output/tea.md", "content": "oolong"})
FIRST = ("write_file", {"path": "notes/first.md", "content": "By the agent.\n"})


SEARCH = ("search_files", {"query": "tea"})


@contextmanager
def _search_held() -> Iterator[Held]:
    """Make a search take as long as wanted."""
    search, gate = file_search._compile_file_query, Held()

    def _compile_when_released(*given: Any) -> Any:
        gate()
        return search(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_search, "_compile_file_query", _compile_when_released)
        yield gate


class Slow:
    """Does a short job, but takes three seconds for its reply at a todo of phase 2."""

    def __init__(self, todo: int = 1, **verbs: Any) -> None:
        self.todo, self.thinking = todo, asyncio.Event()
        self.requests: list[Request] = []
        work = [FIRST, TEA, DONE]
        handing_over = [hand_over({}, {}), DONE]
        self._short = Short({"Hand": handing_over, "Work": lambda view: work, **verbs})

    def __call__(self, request: Request) -> Answer:
        self.requests.append(request)
        reply = self._short(request)
        view = parse_request_view(request) if request.get("tools") else None
        is_there = (
            view and view.number == 2 and view.current_todo and view.current_todo.id == self.todo
        )
        if not is_there or self.thinking.is_set():
            return reply
        self.thinking.set()
        return Stall(reply, seconds=3)


async def test_a_pause_waits_for_the_calls_of_the_reply_under_way(
    temporal: Client, root: Root
) -> None:
    model = Slow(todo=9, Work=lambda view: [SEARCH, FIRST, TEA, DONE])
    async with serving(temporal, root, model) as jobs:
        with _search_held() as gate:
            handle = await jobs.start(job())
            await gate.until_begun()
            await handle.signal("pause", {"by": "ben"})
            gate.go.set()
            status = await jobs.until(handle, waiting_for="paused")
        folder = jobs.folder(handle)
        # All that the reply wrote is there for a person to edit, and nothing of it follows later.
        assert (folder / "notes/first.md").read_text() == "By the agent.\n"
        assert (folder / "output/tea.md").read_text() == "tea"
        assert [todo["status"] for todo in status["todos"]] == ["completed", "current"]
        assert status["waiting"]["message"] == "Paused by ben."
        [act] = status["people"]
        assert act["detail"] == (
            "it takes effect after write_file notes/first.md, write_file output/tea.md, "
            "todo_complete"
        )
        (folder / "output/tea.md").write_text("Tea, by a person.")
        await handle.signal("resume", {"by": "ben"})
        await jobs.until(handle, waiting_for=None, step=lambda step: step > status["step"])
        assert any("+Tea, by a person." in str(each["messages"][-1]) for each in model.requests)
        await jobs.result(handle)


async def test_a_pause_before_a_call_that_would_end_the_job_names_it(
    temporal: Client, root: Root
) -> None:
    async with serving(
        temporal, root, Short({"Close": lambda view: [SEARCH, close("output/tea.md")]})
    ) as jobs:
        with _search_held() as gate:
            handle = await jobs.start(job())
            await gate.until_begun()
            await handle.signal("pause", {})
            gate.go.set()
            status = await jobs.until(handle, waiting_for="paused")
        assert status["waiting"]["message"] == (
            "Paused by a person. 1 call of the last reply is still to be carried out: job_complete."
        )
        assert status["result"] is None
        await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"


async def test_who_did_what_and_when_is_in_the_status_and_the_archive(
    temporal: Client, root: Root
) -> None:
    model = at_todo(phase=2, number=1, model=Short({"Hand": [hand_over({}, {}), DONE]}))
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        await jobs.until(handle, waits_until=bool)
        await handle.signal("tell", {"text": "Use oolong.", "by": "ada"})
        await handle.signal("bypass", {"guard": "nobody", "by": "cyn"})
        await handle.signal("pause", {"by": "ben"})
        status = await jobs.until(handle, waiting_for="paused")
        assert status["waiting"]["message"].startswith("Paused by ben. 1 call of the last reply")
        (jobs.folder(handle) / "notes/water.md").write_text("Soft.\n")
        await handle.signal("resume", {"by": "dee"})
        await jobs.until(handle, waiting_for=None)
        await handle.signal("limit", {"tokens": 1_000_000, "phase": {"model_calls": 90}})
        await handle.signal("rewind", {"issue": "Once more.", "by": "eve"})
        status = await jobs.until(handle, rewinds=1)
        page = (jobs.folder(handle) / "archive/phase_002.md").read_text()
        await handle.signal("cancel", {"reason": "enough", "by": "flo"})
        acts: list[dict[str, Any]] = status["people"]
    assert [(act["by"], act["did"], act["detail"]) for act in acts] == [
        ("ada", "told the agent", "Use oolong."),
        ("cyn", "let through once what nobody refused", ""),
        ("ben", "paused the job", ""),
        ("dee", "let the job go on", "files edited: notes/water.md (new)"),
        ("", "set limits", "tokens=1000000, phase.model_calls=90"),
        ("eve", "took the running phase back", "Once more."),
    ]
    assert all(act["phase"] == 2 and act["at"] > 1_700_000_000 for act in acts)
    assert acts[1]["refused"].endswith("those that have are: none")
    # Files contain no times, and no acts that leave the work unchanged: two runs of the same
    # steps have the same tree, whoever paused them.
    assert "- ada: Use oolong.\n" in page
    assert (
        "## What people did\n\n- dee let the job go on: files edited: notes/water.md (new)\n\n"
    ) in page
    assert "## Issue, from eve\n" in page
    assert not any(name in page for name in ("ben", "cyn", "limits"))


async def test_an_item_of_a_person_that_is_done_on_the_spot_costs_no_list(
    temporal: Client, root: Root
) -> None:
    boxes = ["[x] Boil", "[x] Brew"]
    tries: list[str] = []

    def mark(view: RequestView) -> list[Call]:
        tries.append(view.calls[-1].result if view.calls else "")
        own = [OOLONG] if len(tries) > 1 else []
        return [plan(*boxes), *own, close("output/tea.md")]

    model = Slow(Mark=mark)
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        async with asyncio.timeout(20):
            await model.thinking.wait()
        await handle.signal("tell", {"text": "Use oolong.", "item": True})
        result = await jobs.result(handle)
        items = (await handle.query("status"))["items"]
    assert (result["status"], result["phases"]) == ("completed", 3)
    # The word of job_complete alone is not enough.
    assert "1 scope item is open: A1 Use oolong." in tries[1]
    assert len(tries) == 2
    assert [(item["id"], item["status"]) for item in items][-1] == ("A1", "completed")
