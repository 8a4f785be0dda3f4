"""A job's record as the workflow's code keeps it, without a job."""

from typing import Any

from protocol.job_record import JobRecord
from protocol.job_state import JobState
from protocol.limits import JobLimits
from protocol.phase import Phase, PhaseKind, Purpose
from protocol.scope_ledger import ScopeItem
from protocol.todo_list import Todo


def phase(purpose: Purpose = "transition", done: int = 0, **details: Any) -> Phase:
    kind: PhaseKind = "tactical" if purpose == "work" else "strategic"
    todos = [Todo(id=n, content=f"Step {n}", done=n <= done) for n in (1, 2, 3)]
    return Phase(
        **{"number": 2, "kind": kind, "purpose": purpose, "name": "Look", "todos": todos} | details
    )


def state(purpose: Purpose = "transition", **details: Any) -> JobState:
    scope = [ScopeItem(id="S1", text="tea"), ScopeItem(id="S2", text="water")]
    return JobState(phase=phase(purpose, **details), scope=scope)


def record(**details: Any) -> JobRecord:
    base: dict[str, Any] = {
        "agent": "generalist",
        "model": "m",
        "title": "Tea",
        "root": "r",
        "commit": "c0",
        "at": 1,
        "state": state(),
        "tools": [],
        "limits": JobLimits(),
    }
    return JobRecord(**base | details)
