"""Facts for the gates: read here from a workspace, judged in `workflows.rules.gates`."""

from collections.abc import Sequence
from typing import Any

from activities.acceptance.lost_work import KeptWork
from activities.checkpoints import Root
from activities.commands.check_commands import CheckRunner
from activities.job.activity_context import open_activity_snapshot
from activities.job.deliverables import (
    explained_items,
    is_named_unresolved,
    list_missing_deliverables,
    list_unnamed_deliverables,
)
from activities.job.done_when import NO_COMMANDS, unmet_condition_reason
from activities.job.placement import place_items, unplaced_items
from activities.job.plan_and_todo_files import (
    MAX_FOUND,
    PlanPhase,
    changed_todo_files,
    parse_agent_todo_file,
    parse_plan,
    plan_boxes,
    plan_step_texts,
    unread_plan_headings,
)
from activities.job.snapshot import Snapshot
from activities.job.typed_result import result_problem
from activities.projects.handoff_checks import handoff_problems
from activities.runtime.activity_info import activity_job_id
from activities.steps.root_activity import thread_activity
from activities.text import tokens
from activities.tool_catalogue import EXTENSIONS, REGISTRY
from activities.toolkit.agent_tools import agent_has_tool
from activities.toolkit.path_ownership import work_fingerprint
from activities.toolkit.tool_errors import ToolError
from protocol.endings import ContractFacts, FactsRequest, GateFacts, GateFactsReply
from protocol.evidence import SeenWork
from protocol.phase import Phase
from protocol.scope_ledger import ScopeItem, sync_plan_steps, vanished_steps
from protocol.short_text import first_few, one_line, shorten_to_both_ends
from protocol.todo_list import TodoEntry

MAX_NAMED = 30
MAX_BOXES = 3
MAX_PLAN_CHARACTERS = 6000
MAX_PLACES = 60
MAX_REASON_CHARACTERS = 2000


@thread_activity
def gate_facts(root: Root, request: FactsRequest) -> GateFactsReply:
    snapshot = open_activity_snapshot(root, request)
    checks = CheckRunner(root, activity_job_id(), snapshot.config)
    facts = gather_gate_facts(snapshot, request.call, checks)
    name, arguments, _ = _ending_call(snapshot, request.call)
    if name == "job_complete":
        entries = arguments.get("unresolved") or []
        for extension in EXTENSIONS:
            extension.add_store_facts(root, snapshot, facts)
            extension.add_completion_facts(snapshot, entries, facts)
        facts.unexplained_writes = [
            write
            for write in facts.unexplained_writes
            if not is_named_unresolved(write, write, entries)
        ][:MAX_NAMED]
    return GateFactsReply(facts=facts)


def _ending_call(snapshot: Snapshot, call: int | None) -> tuple[str, dict[str, Any], str | None]:
    """Return name (empty after a handover) and arguments of the call, and their fault."""
    if call is None:
        return "", {}, None
    function = snapshot.tool_call(call)["function"]
    try:
        return function["name"], REGISTRY[function["name"]].parse(function["arguments"]), None
    except ToolError as problem:
        return function["name"], {}, str(problem)[:500]


def gather_gate_facts(
    snapshot: Snapshot, call: int | None, checks: CheckRunner | None = None
) -> GateFacts:
    name, arguments, error = _ending_call(snapshot, call)
    entries: list[str] = arguments.get("unresolved") or []
    deliverables: list[str] = arguments.get("deliverables") or []
    state = snapshot.state
    current = state.phase.current if name == "todo_complete" else None
    facts = GateFacts(
        idle=state.phase_seen.is_idle and current is not None and not current.done_when,
        worked=_work_is_seen(state.phase_seen, state.phase),
        files_changed=len(state.phase_seen.files),
        updated=changed_todo_files(snapshot.changes, snapshot.state.phase),
        unmet=unmet_condition_reason(
            snapshot.files, current.done_when if current else None, checks
        ),
        workspace_tokens=tokens.count_tokens(snapshot.read_text("workspace.md")),
        missing_deliverables=list_missing_deliverables(snapshot, deliverables),
        arguments_error=error,
    )
    plan = parse_plan(snapshot.read_text("plan.md"))
    _add_plan_facts(snapshot, plan, entries, facts)
    todos = _add_todo_facts(snapshot, plan, facts)
    if snapshot.config.approve_plan and state.phase.kind == "strategic":
        facts.contract = _contract_facts(snapshot, plan, todos)
    if name == "job_complete":
        _add_completion_facts(snapshot, entries, facts)
        if not error:
            facts.unnamed_deliverables = list_unnamed_deliverables(snapshot, deliverables, entries)
    return facts


def _work_is_seen(seen: SeenWork, phase: Phase) -> bool:
    """Return whether work was seen in the phase, and no list waits for a condition of a todo."""
    is_list = phase.kind == "tactical"
    return bool(seen.calls) and not (is_list and any(t.done_when for t in phase.open_todos))


def _add_plan_facts(
    snapshot: Snapshot, plan: Sequence[PlanPhase], entries: Sequence[str], facts: GateFacts
) -> None:
    """Fill in what the plan says, and what of it the call leaves open without a reason."""
    state, boxes = snapshot.state, plan_boxes(plan)
    vanished = vanished_steps(state.scope, plan_step_texts(plan))
    explained = explained_items(state.scope, entries)
    facts.plan_phases = len(plan)
    facts.plan_unboxed = [phase.name[:100] for phase in plan if not phase.boxes][:10]
    unread = unread_plan_headings(snapshot.read_text("plan.md"))
    facts.plan_unread = [line[:100] for line in unread][:10]
    facts.plan_open = sum(phase.is_open for phase in plan)
    facts.plan_ahead = any(
        phase.is_open for place, phase in enumerate(plan, 1) if place != state.phase.plan_position
    )
    facts.plan_boxes = [text[:80] for done, text in boxes if not done][:MAX_BOXES]
    facts.plan_steps = len(boxes)
    facts.vanished = [item.id for item in vanished]
    if snapshot.config.todos.work and entries:
        # The plan of an agent with a list of its own is the system's: its steps need no reasons.
        facts.gives_up = True
        facts.unexplained_items = [i.id for i in state.open_scope if i.id not in explained]
        return
    facts.unexplained_phases = [
        phase.label
        for phase in plan
        if phase.is_open and not is_named_unresolved(f"Phase {phase.number}", phase.name, entries)
    ][:MAX_NAMED]
    facts.unexplained_items = [
        item.id for item in [*state.open_scope, *vanished] if item.id not in explained
    ][:MAX_NAMED]


def _add_todo_facts(
    snapshot: Snapshot, plan: Sequence[PlanPhase], facts: GateFacts
) -> list[TodoEntry]:
    """Fill in what `todos.yaml` hands over and what nothing stands for; return the todos."""
    handed, scope = parse_agent_todo_file(snapshot.read_bytes("todos.yaml")), snapshot.state.scope
    if not agent_has_tool(snapshot.config, "run_command"):
        for todo in handed.todos:
            if todo.done_when and todo.done_when.command:
                todo.done_when, todo.done_when_error = None, NO_COMMANDS
    known = {item.id for item in sync_plan_steps(scope, plan_step_texts(plan))}
    unplaced = unplaced_items(scope, snapshot.read_text("plan.md"), handed.todos)
    facts.todos_file, facts.todos_error = handed.status, handed.error
    # Bounded: all todos stay in the checkpoint, and the gate needs few facts about them.
    facts.todos_count, facts.todos = handed.count, handed.todos[:MAX_FOUND]
    facts.unknown_items = _todos_with_unknown_items(handed.todos, known)
    facts.unplaced = [f"{item.id} {item.text[:80]}" for item in unplaced]
    return handed.todos


def _todos_with_unknown_items(todos: Sequence[TodoEntry], known: set[str]) -> list[str]:
    """Return `todo 3: S9` for each todo that names items which do not exist; the first few."""
    unknown = {todo.id: [name for name in todo.items if name not in known] for todo in todos}
    return [f"todo {id}: {first_few(names, 10)}" for id, names in unknown.items() if names][:5]


def _contract_facts(
    snapshot: Snapshot, plan: Sequence[PlanPhase], todos: Sequence[TodoEntry]
) -> ContractFacts:
    state, text = snapshot.state, snapshot.read_text("plan.md")
    places = place_items(state.scope, text)
    by_todo = {name: todo.id for todo in todos for name in todo.items}

    def placed(item: ScopeItem) -> str:
        phases = [str(position) for position in sorted(places[item.id])]
        where = f"phase {', '.join(phases)}" if phases else ""
        todo = f"todo {by_todo[item.id]}" if item.id in by_todo else ""
        return f"{item.id} {one_line(item.text, 160)}: {' and '.join(filter(None, (where, todo)))}"

    scope = [item for item in state.scope if not item.is_step]
    done = [todo for todo in state.phase.todos if todo.done and todo.done_when]
    return ContractFacts(
        plan=shorten_to_both_ends(text, MAX_PLAN_CHARACTERS),
        places=[placed(item) for item in scope if item.status == "open"][:MAX_PLACES],
        phases=[phase.label for phase in plan],
        boxes=len(plan_boxes(plan)),
        checks=[
            *(f"todo: {todo.done_when.line}" for todo in todos if todo.done_when),
            *(f"{verifier.name}: {verifier.command}" for verifier in snapshot.config.verifiers),
        ],
        held=[f"todo: {todo.done_when.line}" for todo in done if todo.done_when],
        dropped={
            item.id: f"{one_line(item.text, 160)}: {item.reason}"
            for item in scope
            if item.status == "dropped"
        },
    )


def _add_completion_facts(snapshot: Snapshot, entries: Sequence[str], facts: GateFacts) -> None:
    if not facts.arguments_error:
        facts.deliverables_fingerprint = work_fingerprint(snapshot)
    # What the call says is left undone is judged as open, not as amiss.
    explained = explained_items(snapshot.state.scope, entries)
    work = KeptWork(snapshot)
    facts.amiss = [
        f"{item.id}: {'; '.join(problems[:3])}"[:300]
        for item in snapshot.state.scope
        if item.status != "dropped"
        and item.id not in explained
        and (problems := work.problems(item))
    ]
    facts.handoff = [why[:MAX_REASON_CHARACTERS] for why in handoff_problems(snapshot)][:MAX_NAMED]
    facts.result_problem = result_problem(snapshot)
