"""Activities that last until a test releases them, to test what arrives meanwhile."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from activities.steps import gate_facts
from activities.steps.transition import TransitionActivity
from tests.workflows.serving import Jobs


class Held:
    """Holds its caller, in a thread, until it is released."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        assert self.go.wait(60)

    async def until_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 60)


@contextmanager
def gate_held(ends: str) -> Iterator[Held]:
    """Hold a gate after phase 1 for as long as wanted, and then let it pass.

    Args:
        ends: The tool whose call would end phase or job.
    """
    read, gate = gate_facts.gather_gate_facts, Held()

    def read_facts(snapshot: Any, call: int | None, checks: Any = None) -> Any:
        ended_by = None if call is None else snapshot.tool_call(call)["function"]["name"]
        if snapshot.state.phase.number > 1 and ended_by == ends:
            gate()
        return read(snapshot, call, checks)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate_facts, "gather_gate_facts", read_facts)
        yield gate


@contextmanager
def transition_held() -> Iterator[Held]:
    """Make the transition to a new phase take as long as wanted, as if the host were gone."""
    run, gate = TransitionActivity._run_transition, Held()

    def _run_when_released(phases: TransitionActivity, *given: Any) -> Any:
        gate()
        return run(phases, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransitionActivity, "_run_transition", _run_when_released)
        yield gate


async def paused_at_gate(jobs: Jobs, start: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a job that was paused during the gate after phase 2, and its status."""
    with gate_held("todo_complete") as gate:
        handle = await jobs.start(start)
        await gate.until_begun()
        await handle.signal("pause", {})
        gate.go.set()
        return handle, await jobs.until(handle, waiting_for="paused")
