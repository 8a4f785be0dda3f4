"""Whatever a model calls, in whatever order, what the job reports about itself is true.

The workflow's memory equals the checkpoint whenever the model is asked. A todo is done only if a
call completed it, or if its changed file, the list or the end of the job shows it. A phase that
ended has no open todos. The job ends.
"""

import asyncio
import random
from itertools import pairwise
from typing import Any

import httpx2
import pytest
import yaml
from temporalio.client import Client, WorkflowHandle

from activities.checkpoints import Root, open_checkpoints
from activities.job.conversation_calls import count_newest_results, newest_calls
from activities.job.snapshot import Snapshot
from protocol.phase import Phase
from protocol.todo_list import Todo
from rehearsal import RehearsalTransport
from tests.soak import soak
from tests.workflows.babble import Babble
from tests.workflows.serving import Jobs, serving

LETTER = 0.1
"""How often a person sends a signal during a model call."""
MOST = 5000
"""Most checkpoints of a job that are examined."""
WAITS = {"stuck", "review", "rewinds", "paused"}
SET = {
    "limits.min_todos": 1,
    "limits.rewinds": 5,
    "limits.clarifications": 0,
    "reflection": False,
    "scope.beyond": "list",
}
OWN_LIST = {"todos.work": ["Make the tea.", "Taste it.", "Pour it."]}
LISTS: dict[str, dict[str, object]] = {"planned": {}, "own list": {**OWN_LIST}}
RUNS = [(seed, kind) for seed in range(1, 60) for kind in LISTS]
LETTERS: list[tuple[str, dict[str, object]]] = [
    ("pause", {}),
    ("rewind", {"issue": "Not like this."}),
    ("rewind", {"issue": "Begin again.", "phase": 1}),
    ("tell", {"text": "Hurry."}),
]


class Comparing(httpx2.AsyncBaseTransport):
    """Compares the workflow's status with its checkpoint before the model may answer."""

    def __init__(self, client: Client, root: Root, job: str, seed: int) -> None:
        self._handle = client.get_workflow_handle(job)
        self._root = root
        self._model = RehearsalTransport(Babble(seed))
        self._chance = random.Random(seed)
        self.different: list[str] = []
        self.compared = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        status: dict[str, Any] = await self._handle.query("status")
        checkpoints = open_checkpoints(self._root, self._handle.id)
        state = Snapshot.load(checkpoints, status["checkpoint"]).state
        summary = (
            status["phase"]["number"],
            [(todo["id"], todo["content"], todo["status"]) for todo in status["todos"]],
            sorted((item["id"], item["status"]) for item in status["items"] + status["steps"]),
        )
        stored = (
            state.phase.number,
            [(todo.id, todo.content, _status(state.phase, todo)) for todo in state.phase.todos],
            sorted((item.id, item.status) for item in state.scope),
        )
        self.compared += 1
        if summary != stored:
            self.different.append(f"{summary} is stored as {stored}")
        if self._chance.random() < LETTER:
            signal, payload = self._chance.choice(LETTERS)
            await self._handle.signal(signal, payload)
        return await self._model.handle_async_request(request)


def _status(phase: Phase, todo: Todo) -> str:
    if todo.done or not todo.needed:
        return "completed" if todo.done else "passed over"
    return "current" if todo is phase.current else "open"


@pytest.mark.parametrize(("seed", "kind"), soak([(2, "own list")], RUNS))
async def test_what_a_job_says_of_itself_is_true(
    temporal: Client, root: Root, seed: int, kind: str
) -> None:
    job = f"babble-{seed}-{kind[:3]}"
    comparing = Comparing(temporal, root, job, seed)
    async with serving(temporal, root, comparing) as jobs:
        handle = await jobs.start(
            {
                "agent": "generalist",
                "instructions": "Make tea.",
                "items": ["Leaves"] if seed % 2 else [],
                "set": {**SET, **LISTS[kind]},
            },
            job_id=job,
        )
        result = await ended(jobs, handle)
        status = await handle.query("status")
    assert result["status"] == "completed"
    assert comparing.compared > 1
    assert not comparing.different, comparing.different[:3]
    checkpoints = open_checkpoints(root, job)
    log = checkpoints.log(result["checkpoint"], MOST)
    story = [Snapshot.load(checkpoints, entry.id) for entry in reversed(log)]
    assert [todo["status"] for todo in status["todos"]] == [
        _status(story[-1].state.phase, todo) for todo in story[-1].state.phase.todos
    ]
    for (before, after), entry in zip(pairwise(story), log[-2::-1], strict=True):
        follows(before, after, entry.message)
    assert not story[-1].state.open_items or result["unresolved"]


async def ended(jobs: Jobs, handle: WorkflowHandle[Any, dict[str, Any]]) -> dict[str, Any]:
    """Return the result; a person resumes the job as often as it waits."""
    waits = asyncio.create_task(jobs.result(handle))
    while not waits.done():
        memo = await (await handle.describe()).memo()
        if str(memo.get("status", "")).startswith("waiting"):
            status = await handle.query("status")
            if status["waiting"] is not None:
                assert status["waiting_for"] in WAITS, status["waiting"]
                await handle.signal("resume", {})
        await asyncio.wait([waits], timeout=0.3)
    return await waits


def follows(before: Snapshot, after: Snapshot, message: str) -> None:
    """Check that only changes named in the message were made between two checkpoints."""
    old, new = before.state.phase, after.state.phase
    done = {todo.id for todo in old.todos if todo.done}
    if new.number == old.number:
        now = {todo.id for todo in new.todos if todo.done}
        assert done <= now
        first = old.current
        if "todo_complete" in message and now != done:
            assert first
            assert now - done == {first.id}, message
        elif now != done and "job completed" in message:
            shown_done(before, now - done, ending="job_complete")
        elif now != done:
            changed = {t.id for t in old.todos if not t.needed and t.updates in message}
            assert now - done == changed, message
        return
    [page] = [
        after.files.read(entry.path).decode()
        for entry in after.files.children("archive")
        if entry.path == f"archive/phase_{old.number:03d}.yaml"
    ]
    data = yaml.safe_load(page)
    now = {todo["id"] for todo in data["todos"] if todo["status"] == "completed"}
    assert done <= now
    # A todo that was passed over is done only if its file was changed after all.
    passed = {todo.id for todo in old.todos if not todo.needed}
    if late := now & passed:
        shown_done(before, late, ending="")
    now -= passed
    if data["outcome"] == "rewound":
        assert now == done
        return
    assert data["outcome"] == "completed"
    if old.purpose != "final":
        assert len(now | passed) == len(old.todos), page
    called = newest_calls(before.conversation, before.state.step)
    result_count = count_newest_results(before.conversation)
    if result_count < len(called):
        assert called[result_count]["function"]["name"] == "todo_complete"
        assert now - done == {todo.id for todo in old.open_todos}
        assert old.open_count == 1
    else:
        assert new.purpose in ("work", "final")
        shown_done(before, now - done, ending="todo_write")


def shown_done(snapshot: Snapshot, ids: set[int], *, ending: str) -> None:
    """Check that every one of these todos has something to show for it."""
    phase, step = snapshot.state.phase, snapshot.state.step
    assert phase.kind == "strategic"
    for todo in phase.todos:
        if todo.id not in ids:
            continue
        if todo.updates and snapshot.files.entry(todo.updates):
            raw = snapshot.changes.entry(todo.updates)
            if raw and phase.since < int(snapshot.changes.read(todo.updates)) <= step:
                continue
        assert todo is phase.todos[-1], todo
        assert phase.purpose != ("final" if ending == "todo_write" else "bootstrap"), todo
    if ending == "todo_write":
        assert snapshot.files.entry("todos.yaml")
