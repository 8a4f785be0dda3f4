"""Traces for the store, without a job."""

import dataclasses
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.checkpoints import Root
from activities.steps.store_traces import store_traces
from protocol.trace_requests import StoreTracesReply, StoreTracesRequest, Trace


def trace(number: int, what: str = "", **details: Any) -> Trace:
    base: dict[str, Any] = {
        "key": f"run.{number}", "type": "violation", "source": "guard", "guard": "log-reading",
        "tool": "read_file", "what_happened": what or f"read_file was refused for log {number}",
        "why": "It has more than 1,000 lines.", "step": number, "phase": 2, "todo": "Read the log.",
        "commit": "c" * 40, "at": 1_700_000_000 + number,
    }  # fmt: skip
    return Trace(**base | details)


def store(root: Root, *traces: Trace, job: str = "job", **details: Any) -> int:
    """Store notes as the workflow hands them over."""
    env: Any = ActivityEnvironment()
    env.info = dataclasses.replace(env.info, workflow_id=job)
    base: dict[str, Any] = {"root": root.id, "agent": "generalist", "task": "Mend the server"}
    request = StoreTracesRequest(**base | details, traces=list(traces))
    stored: StoreTracesReply = env.run(store_traces(root), request)
    return stored.count
