"""Gates: whether a phase or the job may end. Pure functions of the job's state and of facts.

A gate returns a `Refusal`, whose reason says what to fix, or what comes next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from protocol.endings import GateFacts
from protocol.job_state import JobState
from protocol.limits import JobLimits
from protocol.phase import PhaseKind, Purpose, fewest_todos_after_phase
from protocol.scope_ledger import MAX_STEPS, ScopeItem, named_item_ids
from protocol.short_text import count_noun, first_few, one_line
from protocol.todo_list import Todo, todo_list_problems

MOST_NAMED = 30
PLANNING: tuple[Purpose, ...] = ("bootstrap", "rewind", "fork")
"""Purposes of the phases that make a plan, so that everything has to have its place in it."""
MOST_OPEN = 10
"""Most open scope items that a refusal names."""
DO_THE_WORK = (
    "Do the work: {how}; or leave it out with drop_item(ids, reason). What was only read or "
    "answered counts by a file with the answer, such as output/answer.md, or by a todo whose "
    "`notes` name the files looked at. Then call job_complete again."
)
HOW: dict[PhaseKind, str] = {
    "strategic": "hand over a list for it with todo_write, whose todos name what they cover in "
    "`items`",
    "tactical": "with the tools of this phase, which takes no other list",
}
MOST_ON_THE_SPOT = 3
"""Most open items, and most open steps, that the end of the job completes by work just seen, if
that did not change more files."""
GIVING_UP = (
    "If it cannot be done, call todo_rewind(issue) to try another approach: only after that may "
    "what is open be listed in `unresolved` with reasons."
)
NOTHING_SEEN = (
    "Nothing was done in this phase: no call changed a file, ran a command or looked at anything, "
    "so its list cannot be done. Do the todo with the tools that it needs (an answer goes "
    "into a file), then call todo_complete; if it cannot be done as planned, call "
    "todo_rewind(issue)."
)
BY_A_LIST = (
    " The tools that cite belong to tactical phases: hand over a list with "
    "todo_write(phase, description, todos) for it."
)
PLAN_FORM = """\
## Phase 1: name
Objective in a sentence.
- [ ] first step
- [ ] second step"""


@dataclass(frozen=True)
class Refusal:
    reason: str


@dataclass(frozen=True)
class NextPhase:
    """The gate passed; a phase with this purpose follows."""

    purpose: Purpose
    completes: tuple[int, ...] = ()
    """Ids of the todos that are completed with it."""


def phase_gate(state: JobState, facts: GateFacts, limits: JobLimits) -> Refusal | NextPhase:
    """Decide whether the phase may end with its last todo, and what follows."""
    phase = state.phase
    if facts.arguments_error:
        return Refusal(facts.arguments_error)
    if facts.unmet:
        return Refusal(facts.unmet)
    completes = tuple(todo.id for todo in phase.open_todos)
    if phase.kind == "tactical":
        if facts.idle:
            return Refusal(NOTHING_SEEN)
        if phase.ends_job and not facts.plan_ahead:
            return Refusal("This todo is done by calling job_complete, which ends the job.")
        # A person or the model may have added phases to the plan of a single list.
        is_last = limits.single_list and not facts.plan_ahead
        return NextPhase("final" if is_last else "transition", completes)
    if phase.purpose == "final" and facts.todos_file == "missing":
        return Refusal(
            "This todo is done by calling job_complete, which ends the job; if there is still work "
            "to do, hand it over with todo_write."
        )
    outcome = _handover_refusal_or_purpose(state, facts, limits)
    return NextPhase(outcome, completes) if isinstance(outcome, str) else outcome


def handover_gate(state: JobState, facts: GateFacts, limits: JobLimits) -> Refusal | NextPhase:
    """Decide whether a strategic phase that has handed over the next list is over.

    It is if every other todo is completed, or a change of its file shows that it is done.
    """
    phase = state.phase
    last = phase.purpose == "final"
    completes = [
        todo
        for todo in phase.open_todos
        # The last todo of any other list hands over; that of the final list ends the job.
        if todo.updates in facts.updated or (todo is phase.todos[-1] and not last)
    ]
    remaining = [todo for todo in phase.open_todos if todo not in completes]
    # There is work again before the end, so verification comes up with the next end.
    if remaining and not last:
        todo_texts = "; ".join(_gate_todo_text(todo) for todo in remaining)
        return Refusal(
            "The next list is handed over. The phase is over once these todos are done as well: "
            f"{todo_texts}. Do them and call todo_complete for each."
        )
    outcome = _handover_refusal_or_purpose(state, facts, limits)
    if isinstance(outcome, Refusal):
        return outcome
    return NextPhase(outcome, tuple(todo.id for todo in completes))


def _gate_todo_text(todo: Todo) -> str:
    """Return `2. Bring workspace.md up to date (no change of workspace.md was seen)`."""
    unseen_change = f" (no change of {todo.updates} was seen in this phase)" if todo.updates else ""
    return f"{todo.id}. {one_line(todo.content.rstrip('.'), 80)}{unseen_change}"


def _handover_refusal_or_purpose(
    state: JobState, facts: GateFacts, limits: JobLimits
) -> Refusal | Purpose:
    """Return what follows a strategic phase whose todos are done, from its plan and list."""
    phase = state.phase
    if facts.workspace_tokens > limits.workspace_tokens:
        return Refusal(
            f"workspace.md has {facts.workspace_tokens:,} tokens; shorten it to at most "
            f"{limits.workspace_tokens:,} and move details into notes/."
        )
    if unread := _refuse_unreadable_plan(facts):
        return unread
    if facts.plan_phases == 0:
        return Refusal(
            "plan.md has no phase in it. Write plan.md with a part of this form for each:\n"
            + PLAN_FORM
        )
    if facts.plan_unboxed:
        return Refusal(
            f"plan.md has phases without a checkbox step: {', '.join(facts.plan_unboxed)}. Give "
            "each its steps, ticked where they are done. The form of a phase:\n" + PLAN_FORM
        )
    if facts.plan_steps > MAX_STEPS:
        return Refusal(
            f"plan.md has {facts.plan_steps:,} boxes, at most {MAX_STEPS} can be kept account "
            "of. Make the steps larger; the todos of a phase divide them."
        )
    if facts.unplaced and phase.purpose in PLANNING:
        return Refusal(
            "Of what was asked for, no phase of plan.md and no todo stands for: "
            f"{first_few(facts.unplaced, MOST_OPEN)}. Name each by its id, alone or in a range as "
            "B2-B5, in the phase that does it (heading, objective or a box), or in the `items` of "
            "a todo; or leave it out with drop_item(ids, reason)."
        )
    least = fewest_todos_after_phase(
        phase.purpose, facts.plan_phases, facts.plan_open, limits.min_todos
    )
    if facts.todos_file == "missing" and phase.purpose != "bootstrap":
        return _refuse_handover_without_list(facts, least, limits.max_todos) or "final"
    known = [item.id for item in state.scope]
    return _check_handover_todos(facts, least, limits.max_todos, known) or "work"


def completion_gate(state: JobState, facts: GateFacts, rewinds: int) -> Refusal | None:
    """Decide whether the job may end: nothing is open, or everything open has a reason.

    Args:
        state: The job's state with the scope.
        facts: Facts about the workspace and the call.
        rewinds: Number of rewinds; without any, nothing may be given up.
    """
    if facts.arguments_error:
        return Refusal(facts.arguments_error)
    refusal = _refuse_unfinished_work(state, facts, rewinds) or _refuse_unplanned(
        state, facts, rewinds
    )
    if wrong := _delivery_problems(facts, state.phase.kind):
        # Named with the other problems: a few refusals in a row make the job wait for a person.
        return Refusal(" ".join([*wrong, refusal.reason] if refusal else wrong))
    return refusal


def _delivery_problems(facts: GateFacts, kind: PhaseKind) -> list[str]:
    """Return the problems of deliverables, stores and project, a sentence or two each."""
    problems = []
    if facts.amiss:
        problems.append(
            f"What was asked for is not there: {'; '.join(facts.amiss[:MOST_OPEN])}. Put "
            "it right, or leave the item out with drop_item(ids, reason)."
        )
    if facts.missing_deliverables:
        listed = "; ".join(facts.missing_deliverables)
        problems.append(
            f"These deliverables cannot be accepted: {listed}. Make them, or leave out those that "
            "nobody asked for."
        )
    if facts.unnamed_deliverables:
        listed = "; ".join(facts.unnamed_deliverables)
        problems.append(
            f"No deliverable is named: {listed}. Name what the job hands over in `deliverables`."
        )
    if facts.result_problem:
        problems.append(
            f"The result cannot be accepted yet: {facts.result_problem} Mend this, then call "
            "job_complete again."
        )
    if facts.unstored and not facts.store_unavailable:
        # The job waits for a store that does not answer: the model cannot bring it back.
        problems.append(
            f"The stores lack something of this job: {'; '.join(facts.unstored)}. Mend this, then "
            "call job_complete again."
        )
    if facts.uncovered:
        problems.append(
            f"The text is not covered: {' '.join(facts.uncovered)} Cite each with add_requirement "
            "or add_citation, or set it aside with set_sentences_aside, in bulk where a rule fits; "
            f"collect_requirements lists them all.{BY_A_LIST * (kind == 'strategic')} Then call "
            "job_complete again."
        )
    if facts.badly_read:
        problems.append(
            "Nothing is complete of a document that was not read or searched as it is, or that no "
            "requirement is from: "
            f"{'; '.join(facts.badly_read)}. Say in `unresolved`, by its path, what that leaves "
            "open, then call job_complete again."
        )
    if facts.handoff:
        problems.append(
            f"The project cannot take your work over yet. {' '.join(facts.handoff)} Mend this, "
            "then call job_complete again."
        )
    return problems


def _refuse_unfinished_work(state: JobState, facts: GateFacts, rewinds: int) -> Refusal | None:
    """Refuse if plan, scope or refused writes are open, whatever the call says."""
    if unread := _refuse_unreadable_plan(facts):
        return unread
    if completes_on_the_spot(state, facts):
        open_items: list[ScopeItem] = []
        phases = vanished = 0
    elif state.phase.ends_job and facts.gives_up and not facts.plan_ahead:
        open_items, phases, vanished = state.open_scope, 0, 0
    else:
        open_items = state.open_scope
        phases, vanished = facts.plan_open, len(facts.vanished)
    if not (phases or vanished or open_items or facts.refused_writes):
        return None
    what_to_do = DO_THE_WORK.format(how=HOW[state.phase.kind])
    open_work = f"{_open_work_at_gate(state, facts, open_items)} {what_to_do}"
    if not rewinds:
        return Refusal(f"{open_work} {GIVING_UP}")
    if facts.unexplained_phases or facts.unexplained_items or facts.unexplained_writes:
        named = [label[:60] for label in facts.unexplained_phases[:MOST_OPEN]]
        named += facts.unexplained_items + facts.unexplained_writes
        return Refusal(
            f"{open_work} What cannot be done needs an entry of its own in `unresolved`, with its "
            f"id and the reason in some words: {'; '.join(named)}."
        )
    return None


def completes_on_the_spot(state: JobState, facts: GateFacts) -> bool:
    """Whether an accepted `job_complete` completes what is open: a small correction needs no list.

    It does if the running strategic phase did some of the work, and no more is open than it changed
    files; or if the open steps only name items that are done or dropped. An agent that may complete
    from a tactical phase has one list, and work seen for it is work for all of it.
    """
    if state.phase.kind == "tactical":
        return facts.worked and not facts.plan_ahead
    open_steps = [item for item in state.open_items if item.is_step]
    if open_steps and all(_is_step_of_settled_items(step, state) for step in open_steps):
        return not state.open_scope
    most = max(MOST_ON_THE_SPOT, facts.files_changed)
    return (
        facts.worked
        and len(state.open_scope) <= most
        and max(len(open_steps), facts.plan_open) <= most
    )


def _is_step_of_settled_items(step: ScopeItem, state: JobState) -> bool:
    """Whether a step names items by their ids, none of which is open."""
    status = {item.id: item.status for item in state.scope if not item.is_step}
    named = named_item_ids(step.text, status)
    return bool(named) and all(status[name] != "open" for name in named)


def _refuse_unplanned(state: JobState, facts: GateFacts, rewinds: int) -> Refusal | None:
    """Refuse the end of a job for which nothing was ever planned.

    A job that cannot be planned may be given up after a rewind.
    """
    if rewinds or facts.plan_phases or any(item.original for item in state.scope):
        return None
    return Refusal(
        "plan.md has no phase in it and the scope no item: nothing says what there is to do, so "
        "that it cannot be complete. Write plan.md with a part of this form for each phase, then "
        f"do the work:\n{PLAN_FORM}"
    )


def _refuse_unreadable_plan(facts: GateFacts) -> Refusal | None:
    """Refuse an unreadable plan heading: its open boxes would be left out silently."""
    if not facts.plan_unread:
        return None
    return Refusal(
        "plan.md has open boxes under headings that cannot be read as phases: "
        f"{'; '.join(facts.plan_unread)}. Write each heading as `## Phase 2: name`, with a number, "
        "or call it otherwise if it is no phase."
    )


def _refuse_handover_without_list(facts: GateFacts, least: int, most: int) -> Refusal | None:
    """Refuse if no list was handed over: the plan goes on, or its boxes are not ticked."""
    if facts.plan_open == 0:
        return None
    return Refusal(
        f"todos.yaml does not exist, and plan.md has {count_noun(facts.plan_open, 'open phase')}"
        f"{_open_box_examples(facts)}. Its boxes are ticked when a list for it is done: hand "
        f"over the next phase with todo_write ({least} to {most} todos), or drop what is not "
        "needed with drop_item(ids, reason)."
    )


def _open_work_at_gate(state: JobState, facts: GateFacts, items: Sequence[ScopeItem]) -> str:
    """Return the open work in a sentence or two."""
    parts = []
    if facts.plan_open:
        phases = count_noun(facts.plan_open, "open phase")
        parts.append(f"plan.md has {phases}{_open_box_examples(facts)}")
    if facts.vanished:
        gone = [item for item in state.scope if item.id in facts.vanished]
        named = "; ".join(_gate_item_names(gone)).rstrip(".")
        parts.append(f"steps that are no longer in plan.md are open: {named}")
    if items:
        named = "; ".join(_gate_item_names(items)).rstrip(".")
        parts.append(f"{len(items)} scope item{'s are' if len(items) > 1 else ' is'} open: {named}")
    if refused := facts.refused_writes:
        listed = "; ".join(why.rstrip(".") for why in refused)
        parts.append(f"writes that were deferred are refused by their store: {listed}")
    return f"{', and '.join(parts)}."


def _open_box_examples(facts: GateFacts) -> str:
    return f" (such as {'; '.join(facts.plan_boxes)})" if facts.plan_boxes else ""


def _gate_item_names(items: Sequence[ScopeItem]) -> list[str]:
    """Return `S2 Cover water`, for the first few items."""
    named = [f"{item.id} {item.text[:80]}" for item in items[:MOST_OPEN]]
    more = len(items) - MOST_OPEN
    return [*named, f"and {more} more"] if more > 0 else named


def _check_handover_todos(
    facts: GateFacts, least: int, most: int, items: Sequence[str]
) -> Refusal | None:
    """Return what is wrong with the list in `todos.yaml`."""
    if facts.todos_file == "missing":
        over = "" if facts.plan_open else " If all of the plan is done, call job_complete instead."
        return Refusal(
            "todos.yaml does not exist. Hand over the next phase with todo_write "
            f"({least} to {most} todos).{over}"
        )
    if facts.todos_file == "invalid":
        return Refusal(f"todos.yaml cannot be used: {facts.todos_error}. Write it with todo_write.")
    wrong = list(todo_list_problems(facts.todos, facts.todos_count, least, most))[:MOST_OPEN]
    if facts.unknown_items:
        named, known = "; ".join(facts.unknown_items), _item_ids_text(items)
        wrong.append(f"it names items that do not exist: {named} (there are {known})")
    return Refusal(f"todos.yaml cannot be used: {'; '.join(wrong)}.") if wrong else None


def _item_ids_text(items: Sequence[str]) -> str:
    """Return the first ids in order."""
    ordered = sorted(items, key=lambda item: (item[:1], len(item), item))
    return first_few(ordered, MOST_NAMED) or "none"
