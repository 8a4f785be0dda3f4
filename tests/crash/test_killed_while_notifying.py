"""Workers killed around every notification: each is sent, and counts once.

The notified person answers, so that the next notification follows. A worker that dies during a
request cannot know whether it arrived: then, and only then, it is sent again, with the same key.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import WorkflowHandle

from activities.checkpoints import Root
from rehearsal.request_view import RequestView
from rehearsal.server import ModelServer
from tests.crash.begun import Begun, Place
from tests.crash.processes import Worker
from tests.crash.trial import SEED
from tests.receiver import Receiver, receiver
from tests.soak import soak
from tests.workflows.short import DONE, TEA, Call, Short, job

KILLS = soak(3, 20)
BEFORE, WITHIN, AFTER = "before", "within", "after"
PATIENCE = soak(120, 400)


@dataclass
class Shaken:
    """A job that waits once for each kill, and the notifications it sent."""

    there: Receiver
    moments: list[str] = field(default_factory=list)
    """The moment of each kill, in the order of the waits."""


async def test_each_notification_counts_once_whenever_workers_die(begun: Begun) -> None:
    outcome = await begun(trial)
    endpoint, moments = outcome.there, outcome.moments
    context = f"seed {SEED}: {moments}, {endpoint.keys}"
    assert len(moments) == KILLS
    # What a receiver counts if it takes each key once: every wait, and the end.
    first = {body["key"]: body for body in reversed(endpoint.bodies)}
    assert Counter(body["event"] for body in first.values()) == {"waiting": KILLS, "end": 1}, (
        context
    )
    waits = [body for body in endpoint.bodies if body["event"] == "waiting"]
    commands = list(dict.fromkeys(body["command"] for body in waits))
    assert len(commands) == KILLS, context
    assert [body["text"] for body in endpoint.bodies] == [
        first[body["key"]]["text"] for body in endpoint.bodies
    ]
    for moment, command in zip(moments, commands, strict=True):
        times = sum(body["command"] == command for body in waits)
        allowed = {BEFORE: (1, 2), WITHIN: (2,), AFTER: (1,)}[moment]
        assert times in allowed, context
    assert len(endpoint.of("end")) == 1, context


async def trial(place: Place) -> Shaken:
    dealer = random.Random(f"{SEED} notifying")
    moments = [(BEFORE, WITHIN, AFTER)[number % 3] for number in range(KILLS)]
    dealer.shuffle(moments)
    root = Root.open(place.folder / f"notifying-{SEED}", create=True)
    with receiver() as endpoint, ModelServer(Short({"Work": work})) as model:
        client = await place.temporal.client()
        queue = f"notifying-{SEED}"

        def worker() -> Worker:
            where = (place.temporal.address, root.path, queue, model.base_url)
            return place.workers.worker(*where)

        at_work = worker()
        handle: WorkflowHandle[Any, dict[str, Any]] = await client.start_workflow(
            "Job", start(endpoint), id=queue, task_queue=queue, result_type=dict
        )
        async with asyncio.timeout(PATIENCE):
            for number, moment in enumerate(moments, 1):
                if moment == WITHIN:
                    endpoint.answers.clear()
                if moment == BEFORE:
                    await asyncio.sleep(dealer.uniform(0, 0.3))
                else:
                    await until_called(endpoint, number)
                if moment == AFTER:
                    await asyncio.sleep(1)
                at_work.kill()
                await asyncio.to_thread(at_work.until_gone)
                endpoint.answers.set()
                at_work = worker()
                await until_called(endpoint, number)
                # The newest request may repeat one of an earlier wait.
                body = list({each["key"]: each for each in endpoint.bodies}.values())[number - 1]
                if moment == WITHIN:
                    await until_again(endpoint, body["key"])
                await handle.signal("approve", {"id": body["command"].split()[-1]})
            result = await handle.result()
            assert result["status"] == "completed"
            while not endpoint.of("end"):  # noqa: ASYNC110 - a thread tells
                await asyncio.sleep(0.02)
            # A second one would arrive by now.
            await asyncio.sleep(1)
    return Shaken(endpoint, moments)


def start(endpoint: Receiver) -> dict[str, Any]:
    settings = {
        "notify": {"url": endpoint.url, "on": ["waiting", "end"]},
        "approve": ["append_file"],
        # So few that the job takes several runs of the workflow.
        "limits.history_events": 100,
    }
    return job(set=settings)


def work(view: RequestView) -> Sequence[Call]:
    if view.replies < KILLS:
        return [("append_file", {"path": "notes/log.md", "content": f"{view.replies}\n"})]
    return [TEA, DONE]


async def until_called(endpoint: Receiver, times: int) -> None:
    """Wait until that many waits were notified."""
    while len({body["key"] for body in endpoint.bodies}) < times:  # noqa: ASYNC110 - a thread tells
        await asyncio.sleep(0.005)


async def until_again(endpoint: Receiver, key: str) -> None:
    """Wait until the notification has arrived a second time."""
    while endpoint.keys[key] < 2:  # noqa: ASYNC110 - a thread tells
        await asyncio.sleep(0.005)
