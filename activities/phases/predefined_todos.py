"""Todo lists from the configuration, and which of their todos the system completes."""

from collections.abc import Sequence

from activities.job.brief_statements import brief_statements
from activities.job.plan_and_todo_files import PlanPhase, changed_todo_files, list_under_heading
from activities.job.snapshot import Snapshot
from activities.toolkit.agent_tools import ends_job_in_list
from config.schema.agent import AgentConfig
from config.schema.agent_sections import PredefinedTodo
from protocol.job_state import JobState
from protocol.phase import Phase, Purpose
from protocol.scope_ledger import sync_plan_steps
from protocol.short_text import shorten_to_start
from protocol.todo_list import Todo

STRATEGIC_NAMES: dict[Purpose, str] = {
    "bootstrap": "Understand and plan",
    "transition": "Take stock and plan ahead",
    "rewind": "Reconsider the approach",
    "fork": "Reconsider the plan",
    "final": "Verify and complete",
}
MAX_NAME = 80
OWN_PLAN = """\
# Plan

The work is one list, which the agent's configuration brings.

## Phase 1: {name}

{boxes}
"""


def predefined_todos(
    config: AgentConfig, purpose: Purpose, instructions: str, page: str = ""
) -> list[Todo]:
    """Return the todos of a strategic phase; instructions may list the final todos themselves."""
    entries: list[PredefinedTodo] = getattr(config.todos, purpose) or config.todos.rewind
    if purpose == "final" and (listed := list_under_heading(instructions, "Final todos")):
        closing = [] if "job_complete" in listed[-1] else entries[-1:]
        entries = [*(PredefinedTodo(content=text) for text in listed), *closing]
    elif purpose == "final":
        statements = brief_statements(instructions, "instructions.md")
        asked_for = {path for statement in statements for path in statement.paths}
        # A report of ours must not take the place of a result that has its name.
        entries = [entry for entry in entries if entry.updates not in asked_for]
    todos = _number_predefined_todos(entries)
    for todo, entry in zip(todos, entries, strict=True):
        if entry.archived and page:
            todo.done, todo.notes = True, page
    return todos


def begin_configured_list(snapshot: Snapshot, number: int) -> None:
    """Start the agent's configured todo list as a plan of one phase.

    Each todo is a box of the plan, and the list stands for all open items. The final todos follow
    if the agent ends its job within its list. If the job is a fork, the steps of the first job's
    plan leave the ledger with that plan: they would count as done here although all is done again.
    """
    config, before = snapshot.config, snapshot.state
    todos = _number_predefined_todos(config.todos.work)
    closing = [todos.pop()] if config.todos.work_calls_job_complete else []
    if not ends_job_in_list(config):
        closing = []
    elif not closing:
        closing = predefined_todos(config, "final", snapshot.read_text("instructions.md"))
    for place, todo in enumerate(closing, len(todos) + 1):
        todo.id = place
    name = shorten_to_start(config.description.rstrip(".") or config.name, MAX_NAME)
    plan = OWN_PLAN.format(name=name, boxes="\n".join(f"- [ ] {todo.content}" for todo in todos))
    others = [item for item in before.scope if not item.is_step]
    steps = sync_plan_steps([], [(1, todo.content) for todo in todos])
    for todo, step in zip(todos, steps, strict=True):
        todo.items = [step.id]
    scope = [*others, *steps]
    snapshot.files = snapshot.files.write("plan.md", plan.encode())
    snapshot.state = JobState(
        step=before.step,
        last_requirement=before.last_requirement,
        scope=scope,
        phase=Phase(
            number=number,
            kind="tactical",
            purpose="work",
            name=name,
            since=before.step,
            plan_position=1,
            plan_total=1,
            covers=[item.id for item in scope if item.status == "open"],
            ends_job=bool(closing),
            todos=[*todos, *closing],
        ),
    )


def todos_completed_by_job_end(snapshot: Snapshot) -> list[int]:
    """Return ids of open todos that an accepted `job_complete` completes: those whose file
    changed, and the last one, except for a bootstrap list that ends in a handover. Of the list of
    an agent that has one, these are all, if work was seen."""
    phase = snapshot.state.phase
    updated = changed_todo_files(snapshot.changes, phase)
    if phase.kind == "tactical" and snapshot.state.phase_seen.calls:
        return [todo.id for todo in phase.open_todos]
    last = phase.todos[-1]
    ends_job = phase.purpose != "bootstrap" or "job_complete" in last.content
    return [
        todo.id
        for todo in phase.open_todos
        if todo.updates in updated or (todo is last and ends_job)
    ]


def complete_predefined_plan_todo(
    todos: Sequence[Todo], ended: Phase, plan: Sequence[PlanPhase]
) -> None:
    """Complete the plan's progress todo if every box of the ended phase is ticked."""
    place = ended.plan_position - 1
    if ended.kind != "tactical" or not 0 <= place < len(plan) or plan[place].is_open:
        return
    for todo in todos:
        if todo.updates == "plan.md":
            todo.done, todo.notes = True, f"every box of {plan[place].label} is ticked"


def _number_predefined_todos(entries: Sequence[PredefinedTodo]) -> list[Todo]:
    return [
        Todo(id=number, content=entry.content, updates=entry.updates)
        for number, entry in enumerate(entries, 1)
    ]
