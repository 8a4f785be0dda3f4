"""Ends a phase in a snapshot and begins the next: todos, plan, archive, scope and messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from activities.checkpoints import Files
from activities.job.plan_and_todo_files import (
    parse_agent_todo_file,
    parse_plan,
    plan_boxes,
    with_ticked_plan,
)
from activities.job.remarks import add_remarks_to_instructions
from activities.job.snapshot import Snapshot
from activities.phases.archive import (
    archive_page,
    archive_phase,
    archive_stem,
    with_undone_archive_pages,
)
from activities.phases.orientation import orientation_messages
from activities.phases.predefined_todos import (
    STRATEGIC_NAMES,
    complete_predefined_plan_todo,
    predefined_todos,
)
from activities.runtime.failures import may_retry_activity, typed_failure
from config.schema.agent import ConfigError
from protocol.endings import TransitionRequest
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.scope_ledger import complete_ticked_scope_items, scope_from_plan
from protocol.todo_list import Todo


def build_next_phase(snapshot: Snapshot, request: TransitionRequest) -> Phase:
    """Return the phase that follows: with the list handed over, or with predefined todos."""
    phases = parse_plan(snapshot.read_text("plan.md"))
    position = next((n for n, phase in enumerate(phases, 1) if phase.is_open), len(phases))
    common: dict[str, Any] = {
        "number": request.number,
        "purpose": request.purpose,
        "plan_position": position,
        "plan_total": len(phases),
        "since": snapshot.state.step,
    }
    if request.purpose == "work":
        handed = parse_agent_todo_file(snapshot.read_bytes("todos.yaml"))
        return Phase(
            kind="tactical",
            name=handed.phase or f"Phase {request.number}",
            description=handed.description,
            todos=[
                Todo(
                    id=todo.id or 0,
                    content=todo.content or "",
                    items=todo.items,
                    done_when=todo.done_when,
                )
                for todo in handed.todos
            ],
            **common,
        )
    page = f"{archive_stem(snapshot.state.phase)}.md"
    todos = predefined_todos(
        snapshot.config, request.purpose, snapshot.read_text("instructions.md"), page
    )
    if request.purpose == "transition":
        complete_predefined_plan_todo(todos, snapshot.state.phase, phases)
    return Phase(kind="strategic", name=STRATEGIC_NAMES[request.purpose], todos=todos, **common)


def close_phase(
    snapshot: Snapshot,
    request: TransitionRequest,
    issue: str,
    summary: str,
) -> str:
    """Complete todos, tick their boxes and archive the phase; return its archive page."""
    notes = "" if request.call is None else snapshot.text_argument(request.call, "notes")
    for todo in request.completes:
        snapshot.state.complete_todo(todo, notes)
    snapshot.files = with_ticked_plan(snapshot.files, snapshot.state.scope)
    page = archive_page(
        snapshot,
        request.outcome,
        issue,
        summary,
        by=request.by,
        acts=request.acts,
    )
    snapshot.files = archive_phase(snapshot.files, snapshot.state.phase, page)
    return page.text


def enter_phase(state: JobState, phase: Phase) -> None:
    state.phase = phase
    state.found_tools = []
    state.used_skills = []
    state.images = []


def opening_phase_messages(
    snapshot: Snapshot, request: TransitionRequest, page: str, traces: Sequence[str]
) -> list[dict[str, Any]]:
    restored = request.restore is not None and request.restore_files
    try:
        return orientation_messages(snapshot, page, traces, restored=restored)
    except ConfigError as error:
        # The templates were valid when the job began, so probably a worker of another version
        # checked them; such a worker may take a later attempt.
        raise typed_failure(
            "Unforeseen",
            f"This worker cannot fill the prompts that the job began with, {error}. Those of "
            "another version need a worker of that version",
            retry=may_retry_activity(),
        ) from error


def take_scope_from_plan(snapshot: Snapshot) -> None:
    """Use the boxes of the first plan as the scope of a job that started without one."""
    state = snapshot.state
    if not any(item.original for item in state.scope):
        state.scope = [
            *scope_from_plan(plan_boxes(parse_plan(snapshot.read_text("plan.md")))),
            *state.scope,
        ]


def restore_phase_start(snapshot: Snapshot, commit: str, *, with_files: bool) -> None:
    """Restore the scope of a phase's start; also its files, except archive pages and lessons."""
    base = Snapshot.load(snapshot.checkpoints, commit)
    snapshot.state.scope = base.state.scope
    if with_files:
        since = base.state.phase.number
        lessons = snapshot.read_bytes("experiences.md")
        snapshot.files = with_undone_archive_pages(base.files, snapshot.files, since)
        if lessons is not None:
            snapshot.write_system_file("experiences.md", lessons)
        add_remarks_to_instructions(snapshot)
    else:
        # The plan stays. Follow its boxes now: ticked ones would not show as later changes.
        complete_ticked_scope_items(
            snapshot.state.scope, plan_boxes(parse_plan(snapshot.read_text("plan.md")))
        )


def consume_todo_file(files: Files, phase: Phase) -> Files:
    """Remove `todos.yaml`, archiving it if it is the list of this phase."""
    if files.entry("todos.yaml") is None:
        return files
    if phase.purpose == "work":
        return files.write(
            f"archive/phase_{phase.number:03d}.yaml", files.read("todos.yaml")
        ).delete("todos.yaml")
    return files.delete("todos.yaml")
