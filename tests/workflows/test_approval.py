"""A call that needs approval: the job waits, shows exactly what it would do, and is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.rehearsal import Reply, call
from tests.workflows.deviating import TEA, Deviating
from tests.workflows.serving import Jobs, serving

SETTINGS = {"approve": ["move_file"], "limits.clarifications": 0}
WRITE = ("write_file", {"path": "notes/a.md", "content": "A."})
MOVE = ("move_file", {"source": "notes/a.md", "target": "notes/b.md"})


def moving() -> Deviating:
    return Deviating({3: Reply(None, [WRITE, MOVE, ("list_files", {"path": "notes"})])})


async def waiting(jobs: Jobs, handle: Any) -> dict[str, Any]:
    status = await jobs.until(handle, waiting_for="approval")
    asked: dict[str, Any] = status["approval"]
    assert asked["tool"] == "move_file"
    assert asked["arguments"] == MOVE[1]
    assert f"approve {handle.id} --id {asked['id']}" in status["waiting"]["remedy"]
    assert f"deny {handle.id} --id {asked['id']}" in status["waiting"]["remedy"]
    return asked
