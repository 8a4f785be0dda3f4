"""Ends a phase in a snapshot and begins the next: todos, plan, archive, scope and messages."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from activities.checkpoints import Files
from activities.job.placement import covered_by_list, handed_over_position, waiting_items
from activities.job.plan_and_todo_files import (
    changed_todo_files,
    parse_agent_todo_file,
    parse_plan,
    plan_boxes,
    plan_step_texts,
    with_settled_plan,
)
from activities.job.remarks import add_remarks_to_instructions
from activities.job.snapshot import Snapshot
from activities.job.statement_checks import holds_statements
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
from protocol.evidence import Evidence, SeenWork
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.scope_ledger import STEP_CHARACTERS, fold_past_steps, sync_plan_steps
from protocol.short_text import one_line, shorten_to_start
from protocol.todo_list import Todo


def build_next_phase(snapshot: Snapshot, request: TransitionRequest) -> Phase:
    plan = snapshot.read_text("plan.md")
    phases = parse_plan(plan)
    handed = parse_agent_todo_file(snapshot.read_bytes("todos.yaml"))
    position = handed_over_position(phases, handed.phase if request.purpose == "work" else "")
    common: dict[str, Any] = {
        "number": request.number,
        "purpose": request.purpose,
        "plan_position": position,
        "plan_total": len(phases),
        "since": snapshot.state.step,
    }
    if request.purpose == "work":
        covers, shared = covered_by_list(snapshot.state.scope, plan, position)
        return Phase(
            kind="tactical",
            name=handed.phase or f"Phase {request.number}",
            description=handed.description,
            covers=covers,
            shared=shared,
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
    notes = "" if request.call is None else snapshot.text_argument(request.call, "notes")
    state, holds = snapshot.state, partial(holds_statements, snapshot.files)
    updated = changed_todo_files(snapshot.changes, state.phase)
    state.phase.tick_changed(updated)
    for number in request.completes:
        # The gate has seen the condition of the last todo to hold.
        todo = next((each for each in state.phase.todos if each.id == number), None)
        held = todo.done_when.line if todo and todo.done_when else ""
        done = todo is None or not todo.updates or todo.updates in updated
        state.complete_todo(
            number, notes, commit=snapshot.commit, held=held, done=done, holds=holds
        )
    if request.outcome == "completed":
        state.complete_list(snapshot.commit, holds=holds)
    else:
        state.note_given_up_list(snapshot.commit)
    snapshot.files, _ = with_settled_plan(snapshot.files, state.scope)
    settle_worked_items(snapshot)
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


def note_what_worked(snapshot: Snapshot, phase: Phase) -> None:
    """Add to `experiences.md` how a list was done after an attempt at it had failed."""
    present = snapshot.read_text("experiences.md")
    done = "; ".join(one_line(todo.notes or todo.content, 200) for todo in phase.todos if todo.done)
    if present and done:
        attempt = f"- Worked then, in phase {phase.number} ({phase.name})"
        line = f"{attempt}: {shorten_to_start(done, 1000)}\n"
        snapshot.write_system_file("experiences.md", f"{present.rstrip()}\n{line}".encode())


def settle_worked_items(snapshot: Snapshot) -> None:
    """Complete the items whose work is done and for which no open phase stands any more."""
    waiting = waiting_items(snapshot.state.scope, snapshot.read_text("plan.md"))
    holds = partial(holds_statements, snapshot.files)
    snapshot.state.complete_worked_items(waiting, holds=holds)


def enter_phase(state: JobState, phase: Phase) -> None:
    state.phase = phase
    state.seen, state.phase_seen = SeenWork(), SeenWork()
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


def take_steps_from_plan(snapshot: Snapshot) -> None:
    """Bring the steps of the ledger up to the boxes of the plan, and these up to the ledger."""
    boxes = plan_step_texts(parse_plan(snapshot.read_text("plan.md")))
    snapshot.state.scope = fold_past_steps(sync_plan_steps(snapshot.state.scope, boxes), boxes)
    snapshot.files, _ = with_settled_plan(snapshot.files, snapshot.state.scope)


def complete_steps_ticked_by_person(snapshot: Snapshot, by: str) -> None:
    state, boxes = snapshot.state, plan_boxes(parse_plan(snapshot.read_text("plan.md")))
    ticked = Counter(one_line(text, STEP_CHARACTERS) for done, text in boxes if done)
    ticked -= Counter(i.text for i in state.scope if i.is_step and i.status != "open")
    for item in state.open_items:
        if item.is_step and ticked[item.text] > 0:
            ticked[item.text] -= 1
            item.status = "completed"
            item.evidence = Evidence(
                kind="person", phase=state.phase.number, by=by or "a person", commit=""
            )
    snapshot.files, _ = with_settled_plan(snapshot.files, state.scope)


def restore_phase_start(snapshot: Snapshot, commit: str, *, with_files: bool) -> None:
    """Restore the scope of a phase's start; also its files, except archive pages and lessons."""
    base = Snapshot.load(snapshot.checkpoints, commit)
    known = {item.id for item in base.state.scope}
    # A rewind takes back nothing that people added, but for edits of files that it restores.
    items = [
        item
        for item in snapshot.state.scope
        if item.source == "told"
        and item.id not in known
        and not (with_files and any(statement.place for statement in item.statements))
    ]
    snapshot.state.scope = base.state.scope
    for item in items:
        snapshot.state.add_item(item.text, "told").statements = item.statements
    if with_files:
        since = base.state.phase.number
        lessons = snapshot.read_bytes("experiences.md")
        snapshot.files = with_undone_archive_pages(base.files, snapshot.files, since)
        if lessons is not None:
            snapshot.write_system_file("experiences.md", lessons)
        add_remarks_to_instructions(snapshot)
    else:
        # The plan stays, and its boxes follow the ledger.
        snapshot.files, _ = with_settled_plan(snapshot.files, snapshot.state.scope)


def consume_todo_file(files: Files, phase: Phase) -> Files:
    """Remove `todos.yaml`, archiving it if it is the list of this phase."""
    if files.entry("todos.yaml") is None:
        return files
    if phase.purpose == "work":
        return files.write(
            f"archive/phase_{phase.number:03d}.yaml", files.read("todos.yaml")
        ).delete("todos.yaml")
    return files.delete("todos.yaml")
