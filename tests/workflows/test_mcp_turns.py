"""Calls that MCP servers finish later: they ask a person first, or run as a task."""

import asyncio
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from tests.activities.mcp.serving import PATIENT, patient_over_http
from tests.workflows.queries import query_status
from tests.workflows.serving import serving
from tests.workflows.short import DONE, TEA, Call, Short, job


@dataclass
class Ledger:
    """What the server has done. All tests have the same and share the server, whose start takes
    seconds.
    """

    path: Path

    @property
    def tasks(self) -> Path:
        return self.path.with_name(f"{self.path.name}.tasks")

    def read(self) -> str:
        return self.path.read_text() if self.path.exists() else ""

    def clear(self) -> None:
        self.path.unlink(missing_ok=True)
        shutil.rmtree(self.tasks, ignore_errors=True)


@pytest.fixture(scope="session")
def shared_ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return Ledger(tmp_path_factory.mktemp("patient") / "ledger")


@pytest.fixture
def ledger(shared_ledger: Ledger) -> Ledger:
    shared_ledger.clear()
    return shared_ledger


def patient(ledger: Ledger, *form: str, **settings: Any) -> dict[str, Any]:
    return {
        "patient": {"command": [sys.executable, str(PATIENT), str(ledger.path), *form], **settings}
    }


class Calling:
    """Makes one call in its phase of work, and goes on whatever the result."""

    def __init__(self, tool: str, **arguments: Any) -> None:
        self.told: list[str] = []
        self._call: Call = (f"patient__{tool}", arguments)
        self.model = Short({"Work": self._work})

    def _work(self, view: Any) -> list[Call]:
        tool_results = [each.result for each in view.calls if each.tool == self._call[0]]
        if not tool_results:
            return [self._call]
        self.told = tool_results
        return [("write_file", {"path": "output/tea.md", "content": "tea"}), DONE]


def starting(ledger: Ledger, *form: str, **settings: Any) -> dict[str, Any]:
    servers = patient(ledger, *form)
    return job(set={"mcp": servers, "limits.tools_offered": 60, **settings})


def asks_again(waiting: dict[str, Any]) -> bool:
    return "does not fit" in waiting["about"]["question"]


async def test_a_server_asks_a_person(temporal, root, ledger: Ledger) -> None:
    calling = Calling("order", kind="tea")
    async with serving(temporal, root, calling.model) as jobs:
        handle = await jobs.start(starting(ledger))
        status = await jobs.until(handle, waiting_for="clarification")
        assert "The MCP server patient asks: How much tea?" in status["waiting"]["message"]
        assert '{"size": "small", "sugar": false}' in status["clarification"]["pending"]["default"]
        assert not ledger.read()
        await handle.signal("answer", {"text": "size=huge"})
        await jobs.until(handle, waiting=asks_again)
        await handle.signal("answer", {"text": "size=large; sugar=yes"})
        assert (await jobs.result(handle))["status"] == "completed"
        status = await query_status(handle)
    assert calling.told == ["ordered large tea"]
    assert ledger.read() == "order tea large True\n"
    assert status["clarification"] == {"used": 1, "pending": None, "resolved": 1}


async def test_nobody_answers_a_server(temporal, root, ledger: Ledger) -> None:
    calling = Calling("order", kind="tea")
    settings = {"limits.clarification_hours": 0.0003}
    async with serving(temporal, root, calling.model) as jobs:
        handle = await jobs.start(starting(ledger, **settings))
        assert (await jobs.result(handle))["status"] == "completed"
        status = await query_status(handle)
    # Then the server's own proposal is used.
    assert ledger.read() == "order tea small False\n"
    assert any("nobody answered in time" in line for line in status["notices"])


async def test_a_question_without_a_default_is_not_agreed_to(
    temporal, root, ledger: Ledger
) -> None:
    calling = Calling("sign", kind="tea")
    async with serving(temporal, root, calling.model) as jobs:
        handle = await jobs.start(starting(ledger, **{"limits.clarifications": 0}))
        assert (await jobs.result(handle))["status"] == "completed"
    assert not ledger.read()
    assert calling.told[0].startswith("Error: ")


async def test_questions_of_one_turn_are_put_one_after_the_other(
    temporal, root, ledger: Ledger
) -> None:
    calling = Calling("sign", kind="tea")
    async with serving(temporal, root, calling.model) as jobs:
        handle = await jobs.start(starting(ledger))
        answers = {"Who drinks": "Ann", "How much": '{"size": "large"}'}
        for _ in range(2):
            status = await jobs.until(handle, waiting_for="clarification")
            question = status["waiting"]["about"]
            [answer] = [text for words, text in answers.items() if words in question["question"]]
            await handle.signal("answer", {"id": question["id"], "text": answer})
            await jobs.until(
                handle,
                clarification=lambda now, id_=question["id"]: (
                    (now["pending"] or {}).get("id") != id_
                ),
            )
        assert (await jobs.result(handle))["status"] == "completed"
    assert ledger.read() == "sign tea Ann large\n"


async def test_a_question_outlasts_its_servers_memory(temporal, root, ledger: Ledger) -> None:
    """Servers drop a question after minutes, and a person takes longer."""
    calling = Calling("order", kind="tea")
    async with serving(temporal, root, calling.model) as jobs:
        handle = await jobs.start(starting(ledger, "1.0"))
        await jobs.until(handle, waiting_for="clarification")
        await asyncio.sleep(1.5)
        await handle.signal("answer", {"text": "size=large"})
        assert (await jobs.result(handle))["status"] == "completed"
    assert ledger.read() == "order tea large False\n"


async def test_a_task_is_polled_until_it_ends(temporal, root, ledger: Ledger) -> None:
    calling = Calling("brew", seconds=3)
    async with serving(temporal, root, calling.model) as jobs:
        handle = await jobs.start(starting(ledger))
        await jobs.until(handle, waits_until=bool)
        assert (await jobs.result(handle))["status"] == "completed"
        history = await handle.fetch_history()
    assert calling.told == ["tea is ready"]
    lines = ledger.read().splitlines()
    assert [line.split()[0] for line in lines].count("brew") == 1
    assert 2 <= lines.count("poll") <= 5
    timers = [e for e in history.events if e.HasField("timer_fired_event_attributes")]
    assert len(timers) >= 2


async def test_over_http_a_task_is_polled_and_a_person_asked(
    temporal, root, ledger: Ledger
) -> None:
    calling = Calling("brew", seconds=2, asks=True)
    with patient_over_http(ledger.path) as server:
        start = job(set={"mcp": {"patient": server}, "limits.tools_offered": 60})
        async with serving(temporal, root, calling.model) as jobs:
            handle = await jobs.start(start)
            status = await jobs.until(handle, waiting_for="clarification")
            assert "Which cup? Answer with cup (blue | red)" in status["waiting"]["message"]
            await handle.signal("answer", {"text": "red"})
            await jobs.until(handle, waits_until=bool)
            assert (await jobs.result(handle))["status"] == "completed"
    assert calling.told == ['tea is ready {"cup": "red"}']
    lines = ledger.read().splitlines()
    assert [line.split()[0] for line in lines].count("brew") == 1
    assert lines.count("poll") >= 2


async def test_a_task_asks_a_person(temporal, root, ledger: Ledger) -> None:
    calling = Calling("brew", seconds=0, asks=True)
    async with serving(temporal, root, calling.model) as jobs:
        handle = await jobs.start(starting(ledger))
        status = await jobs.until(handle, waiting_for="clarification")
        assert "Which cup? Answer with cup (blue | red)" in status["waiting"]["message"]
        await handle.signal("answer", {"text": "red"})
        assert (await jobs.result(handle))["status"] == "completed"
    assert calling.told == ['tea is ready {"cup": "red"}']


async def test_tasks_that_do_not_end_well(temporal, root, ledger: Ledger) -> None:
    brews: list[dict[str, Any]] = [
        {"seconds": 0, "fails": "no water"},
        {"seconds": 0, "result": {"content": "odd"}},
        {"seconds": 60},
    ]
    told = list[str]()

    def work(view: Any) -> list[Call]:
        told.extend(done.result for done in view.calls[-1:])
        if view.replies == 2:
            assert "cancel" not in ledger.read()
        return [("patient__brew", brews[view.replies])] if view.replies < 3 else [TEA, DONE]

    start = starting(ledger)
    start["set"]["mcp"]["patient"]["task_seconds"] = 1
    async with serving(temporal, root, Short({"Work": work})) as jobs:
        assert (await jobs.result(await jobs.start(start)))["status"] == "completed"
    assert "Error: patient failed at it: no water" in told[0]
    assert "It is not what the server declared" in told[1]
    late = "Error: patient worked on its task for more than 1 s (mcp.patient.task_seconds)"
    assert late in told[2]
    assert "cancel" in ledger.read()


async def test_a_server_that_forgot_its_task(temporal, root, ledger: Ledger) -> None:
    calling = Calling("brew", seconds=60)
    async with serving(temporal, root, calling.model) as jobs:
        handle = await jobs.start(starting(ledger))
        await jobs.until(handle, waits_until=bool)
        for task in ledger.tasks.iterdir():
            task.unlink()
        assert (await jobs.result(handle))["status"] == "completed"
    assert "does not know its task" in calling.told[0]
    assert "may have happened" in calling.told[0]
    assert ledger.read().count("brew") == 1


@pytest.mark.parametrize("by", ["rewind", "cancel"])
async def test_a_task_that_nobody_wants_any_more_is_cancelled(
    temporal, root, ledger: Ledger, by: str
) -> None:
    calling = Calling("brew", seconds=60)
    async with serving(temporal, root, calling.model) as jobs:
        handle = await jobs.start(starting(ledger))
        await jobs.until(handle, waits_until=bool)
        if by == "rewind":
            await handle.signal("rewind", {"issue": "Not that."})
            await jobs.until(handle, rewinds=1)
            await handle.terminate()
        else:
            await handle.signal("cancel", {"reason": "enough"})
            with pytest.raises(WorkflowFailureError):
                await jobs.result(handle)
    assert ledger.read().splitlines()[-1] == "cancel"


async def test_a_pause_does_not_lose_a_task(temporal, root, ledger: Ledger) -> None:
    calling = Calling("brew", seconds=4)
    async with serving(temporal, root, calling.model) as jobs:
        handle = await jobs.start(starting(ledger))
        await jobs.until(handle, waits_until=bool)
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        # The checkpoint is a different one afterwards, the call still the same.
        (jobs.folder(handle) / "notes").mkdir(exist_ok=True)
        (jobs.folder(handle) / "notes/mine.md").write_text("from a person")
        await handle.signal("tell", {"text": "Use the blue cup."})
        await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"
    assert calling.told == ["tea is ready"]
    assert ledger.read().count("brew") == 1
