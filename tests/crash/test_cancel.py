"""A job is cancelled within seconds, even during a model call that hangs."""

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError

from engine.development import find_temporal_binary
from rehearsal import Answer, Hang, Request, Stall
from rehearsal.request_view import parse_request_view
from tests.crash.begun import Begun, Place
from tests.crash.model import Ledger
from tests.crash.processes import REPOSITORY, environment
from tests.crash.site import Site
from tests.crash.trial import opened
from tests.soak import patient

MOST_SECONDS = 5.0
ASKED = (
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
)


class NeverAnswers(Ledger):
    """Falls silent in the second phase."""

    def __call__(self, request: Request) -> Answer:
        return Hang() if silent(request) else super().__call__(request)


class BreaksOff(Ledger):
    """Falls silent in the second phase, in the middle of an answer."""

    def __call__(self, request: Request) -> Answer:
        reply = self.reply(request)
        return Stall(reply) if silent(request) else reply


class NeverSummarises(Ledger):
    """Falls silent when it is asked for the summary of a phase."""

    def start(self, **settings: object) -> dict[str, Any]:
        return super().start(**{"limits.summary_calls": 0, **settings})

    def __call__(self, request: Request) -> Answer:
        return super().__call__(request) if request.get("tools") else Hang()


def silent(request: Request) -> bool:
    return bool(request.get("tools")) and parse_request_view(request).number == 2


@dataclass
class Case:
    ledger: Ledger
    last_step: int
    """Number of requests up to the one that hangs."""
    command: list[str]
    """The command that a person types, without the job's id."""


TEMPORAL = [str(find_temporal_binary()), "workflow"]
CASES = (
    Case(
        NeverAnswers("Ada"),
        4,
        [*TEMPORAL, "signal", "--name", "cancel", "--input", '{"reason": "enough"}', "-w"],
    ),
    Case(BreaksOff("Ben"), 4, [*TEMPORAL, "cancel", "-w"]),
    Case(NeverSummarises("Cleo"), 7, [sys.executable, "starter.py", "cancel"]),
)


async def test_by_signal_by_temporal_and_by_starter(begun: Begun) -> None:
    await begun(trial)


async def trial(place: Place) -> None:
    ledgers = [case.ledger for case in CASES]
    async with opened(
        Site("cancelled", place.folder, place.workers, place.temporal, ledgers)
    ) as site:
        await asyncio.gather(*(cancelled(site, case) for case in CASES))


async def cancelled(site: Site, case: Case) -> None:
    name = case.ledger.name
    await site.progress({name: 0}, case.last_step)
    # The call lasts longer than any other.
    await asyncio.sleep(1)
    ran = await asyncio.to_thread(
        subprocess.run, [*case.command, site.job_id(name)], cwd=REPOSITORY,
        env=environment(site.server.address, site.root.path, site.name, site.model.base_url),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    handle = site.handles[name]
    with pytest.raises(WorkflowFailureError) as ended:
        await asyncio.wait_for(handle.result(), 30)
    assert isinstance(ended.value.cause, CancelledError)
    events = (await handle.fetch_history()).events
    request_event = next(event for event in events if event.event_type in ASKED)
    took = events[-1].event_time.ToDatetime() - request_event.event_time.ToDatetime()
    assert took.total_seconds() < patient(MOST_SECONDS)
    written = site.root.workspace(site.job_id(name)) / "output" / "completion.json"
    assert json.loads(written.read_text())["status"] == "cancelled"
    assert len(site.asked[name]) == case.last_step
