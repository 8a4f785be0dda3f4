"""Procedures for the todos of strategic phases: survey, plan, take stock, hand over, finish.

The names in a todo (`workspace.md`, `todo_write`, …) decide its procedure, since each agent may
word its predefined todos differently.
"""

import json
import re
from typing import Any

from protocol.endings import COMPLETION_FILE
from protocol.short_text import count_noun
from rehearsal import (
    extraction,
    formulation,
    generalist,
    rehearsal_plan,
    requirement_validation,
    team,
)
from rehearsal.extraction import is_extraction_job
from rehearsal.procedure_replay import (
    Steps,
    call_procedure_tool,
    call_tool_with_retry,
    interleave_procedures,
    write_and_close,
)
from rehearsal.request_view import RequestView, is_error_result
from rehearsal.requirement_validation import is_validation_job
from rehearsal.schema_example import example_value
from rehearsal.tool_answers import (
    documents_in_tool_answer,
    list_paths_from_tool_answer,
    read_file_from_tool_answers,
)

_OPEN_ITEM = re.compile(r"(?:open:|;) ([SBPA]\d+) ")
_GONE_STEP = re.compile(r"\b(P\d+) ")
_RESULT_FILE = re.compile(r"([^\s`]+\.(?:json|ya?ml))\b")
RESULT_SCHEMA = "tools/result_schema.json"
"""Where a job with a typed result finds the schema."""
MAX_SHOWN = 40
MAX_PROGRESS = 20
MAX_LIST = 100
SHORT_WORKSPACE = 6000


def choose_strategic_procedure(view: RequestView, text: str) -> Steps:
    lowered = text.lower()
    if "todo_write" in lowered:
        return rehearse_handover(view)
    if "job_complete" in lowered:
        return (
            team.finish_team_role(view)
            if view.agent in team.ROLES
            else rehearse_job_completion(view)
        )
    if "output/summary.md" in lowered or requirement_validation.REPORT in lowered:
        return _write_strategic_report(view)
    if "workspace.md" in lowered:
        return (
            rehearse_workspace_survey(view)
            if view.is_bootstrap
            else rehearse_workspace_update(view)
        )
    if "plan.md" in lowered and view.is_bootstrap:
        return check_strategic_plan() if lowered.startswith("check") else write_strategic_plan(view)
    if "plan.md" in lowered:
        return (
            revise_strategic_plan(view)
            if view.issue or "revise" in lowered
            else mark_strategic_progress(view)
        )
    if lowered.startswith("verify"):
        return rehearse_output_check()
    return take_strategic_notes(view, text)


def _write_strategic_report(view: RequestView) -> Steps:
    if is_extraction_job(view):
        return extraction.write_extraction_report()
    return (
        requirement_validation.write_validation_report()
        if is_validation_job(view)
        else generalist.write_general_report()
    )


def rehearse_workspace_survey(view: RequestView) -> Steps:
    _, instructions, paths = yield from interleave_procedures(
        call_procedure_tool("list_files"),
        read_file_from_tool_answers("instructions.md"),
        list_paths_from_tool_answer("documents"),
    )
    documents = documents_in_tool_answer(paths)
    texts = list(documents.values())[:3]
    heads = yield [("read_file", {"path": text, "offset": 1, "limit": 5}) for text in texts]
    readable = sum(not is_error_result(head) for head in heads)
    title = next((line.lstrip("# ") for line in instructions if line.strip()), "the instructions")
    shown = [f"- `{path}`" for path in list(documents)[:MAX_LIST]] or ["- none"]
    lines = [
        "# Workspace",
        "",
        f"The job: {title[:200]}",
        "",
        "## Documents",
        "",
        *shown,
        "",
        "## Where things are",
        "",
        "- `instructions.md`: what is wanted, unchanged since the start",
        "- `plan.md`: the phases and how far they are",
        "- `notes/`: what was learned; `output/`: what is delivered",
        *(extraction.PLACES if is_extraction_job(view) else []),
        *(requirement_validation.PLACES if is_validation_job(view) else []),
        "",
        "## Progress",
        "",
        "- Phase 1: surveyed the workspace and planned the work",
    ]
    note = (
        f"Surveyed the workspace: {count_noun(len(documents), 'document')}, {readable} looked into."
    )
    return (yield from write_and_close(note, "workspace.md", "\n".join(lines) + "\n"))


def write_strategic_plan(view: RequestView) -> Steps:
    instructions, paths = yield from interleave_procedures(
        read_file_from_tool_answers("instructions.md"), list_paths_from_tool_answer("documents")
    )
    documents = documents_in_tool_answer(paths)
    text = "\n".join(instructions) or view.opening
    if is_extraction_job(view):
        plan = extraction.plan_extraction_job(list(documents))
    elif is_validation_job(view):
        plan = requirement_validation.plan_validation()
    else:
        plan = team.plan_team_job(text) or generalist.plan_general_job(
            text, documents, view.open_items
        )
    rehearsal_plan.place_rehearsed_items(plan, view.open_items)
    note = f"Wrote plan.md with {count_noun(len(plan.phases), 'phase')}."
    return (yield from write_and_close(note, "plan.md", plan.text))


def check_strategic_plan() -> Steps:
    plan = rehearsal_plan.parse_rehearsal_plan((yield from read_file_from_tool_answers("plan.md")))
    steps = ", ".join(str(len(phase.steps)) for phase in plan.phases)
    return (
        f"The plan has {count_noun(len(plan.phases), 'phase')} with {steps or 'no'} "
        "steps; it stands."
    )


def mark_strategic_progress(view: RequestView) -> Steps:
    plan = rehearsal_plan.parse_rehearsal_plan((yield from read_file_from_tool_answers("plan.md")))
    yield from _let_plan_grow(view, plan)
    ahead = count_noun(sum(not phase.done for phase in plan.phases), "phase")
    return f"plan.md says how far the work is; {ahead} ahead."


def _let_plan_grow(view: RequestView, plan: rehearsal_plan.RehearsalPlan) -> Steps:
    """Add the phases to the plan that nobody could know of before the last one was done."""
    grown = False
    if extraction.may_extraction_grow(plan):
        grown = yield from formulation.divide_formulation(plan)
    if is_validation_job(view):
        grown = yield from requirement_validation.add_validation_rounds(plan)
    if grown:
        result = yield from call_tool_with_retry("write_file", path="plan.md", content=plan.text)
        if gone := _GONE_STEP.findall(result.partition(" still owed: ")[2]):
            reason = "Counted by now: the batches in the plan take the place of this step."
            yield from call_procedure_tool("drop_item", ids=gone, reason=reason)
    return ""


def revise_strategic_plan(view: RequestView) -> Steps:
    lines, instruction_lines = yield from interleave_procedures(
        read_file_from_tool_answers("plan.md"), read_file_from_tool_answers("instructions.md")
    )
    plan, instructions = rehearsal_plan.parse_rehearsal_plan(lines), "\n".join(instruction_lines)
    if (
        "## Amended" in instructions
        and plan.open_phase is None
        and (more := team.plan_team_job(instructions))
    ):
        plan.phases += more.phases
    plan.head += f"\n\nRevised in phase {view.number}, because: {view.issue or 'see notes/'}"
    note = "Noted the issue in plan.md; the open phase is done again from its start."
    return (yield from write_and_close(note, "plan.md", plan.text))


def rehearse_handover(view: RequestView) -> Steps:
    if "workspace.md" in view.refusal:
        yield from _shorten_workspace_page(view)
    plan = rehearsal_plan.parse_rehearsal_plan((yield from read_file_from_tool_answers("plan.md")))
    if not plan.phases and view.refusal:
        yield from write_strategic_plan(view)
        plan = rehearsal_plan.parse_rehearsal_plan(
            (yield from read_file_from_tool_answers("plan.md"))
        )
    # The todo to mark progress is done already if all boxes of the ended phase are ticked.
    yield from _let_plan_grow(view, plan)
    phase = plan.open_phase
    if phase is None:
        return "The plan has no open phase; there is nothing to hand over."
    fewest, most = view.todo_limits
    steps = rehearsal_plan.fit_steps_to_todo_limits(phase.steps, fewest, most, phase.name)
    again = extraction.AGAIN if view.issue else ""
    todos: list[dict[str, Any]] = [
        {"id": n, "content": step[:450] + again} for n, step in enumerate(steps, 1)
    ]
    rehearsal_plan.assign_rehearsed_plan_items(
        todos, view.open_items, last=sum(not other.done for other in plan.phases) == 1
    )
    yield from call_tool_with_retry(
        "todo_write", phase=phase.name, description=phase.objective[:1000], todos=todos
    )
    return f"Handed over {phase.name!r} with {count_noun(len(todos), 'todo')}."


def rehearse_workspace_update(view: RequestView) -> Steps:
    before = view.workspace or "# Workspace\n\n## Progress\n"
    head, _, progress = before.partition("## Progress")
    entries = [line for line in progress.splitlines() if line.startswith("- ")][-MAX_PROGRESS:]
    done = view.number - 1
    entries.append(f"- Phase {done}: done, see `{_strategic_note_path(done)}`")
    if view.issue:
        entries.append(f"- Phase {done} was taken back: {view.issue[:200]}")
    text = f"{head.strip()[:SHORT_WORKSPACE]}\n\n## Progress\n\n" + "\n".join(entries) + "\n"
    note = "workspace.md says what is done and where it is."
    return (yield from write_and_close(note, "workspace.md", text))


def take_strategic_notes(view: RequestView, text: str) -> Steps:
    """Summarise the phase, note a failure, or do a todo for which there is no rule."""
    done = view.number - 1
    todo = view.current_todo.id if view.current_todo else 0
    first = view.todos[0].id if view.todos else todo
    path = (
        _strategic_note_path(done) if todo == first else f"notes/phase_{view.number:03d}_{todo}.md"
    )
    facts = [line for line in view.archive.splitlines() if line.lstrip().startswith(("-", "☑"))]
    lines = [f"# Notes on phase {done}", "", text, ""]
    if view.issue:
        lines += [f"The phase was taken back. The issue: {view.issue}", ""]
        lines += ["Two approaches were weighed: to go on from where the work stopped, and to do"]
        lines += ["the open phase again from its start. The second is chosen: it is safe.", ""]
    lines += ["## What the archive says", "", *(facts[:MAX_SHOWN] or ["- nothing"]), ""]
    return (yield from write_and_close(f"Wrote {path}.", path, "\n".join(lines)))


def rehearse_output_check() -> Steps:
    paths = yield from list_paths_from_tool_answer("output")
    heads = yield [("read_file", {"path": path, "offset": 1, "limit": 60}) for path in paths[:4]]
    readable = sum(not is_error_result(head) for head in heads)
    return f"Read {readable} of {count_noun(len(paths), 'file')} in output/; each has content."


def rehearse_job_completion(view: RequestView) -> Steps:
    source = requirement_validation.REPORT if is_validation_job(view) else "output/summary.md"
    paths, report = yield from interleave_procedures(
        list_paths_from_tool_answer("output"), read_file_from_tool_answers(source)
    )
    deliverables = [path for path in paths if path != COMPLETION_FILE][:MAX_LIST]
    summary = _strategic_section_lines(report, "What was done") or ["The plan was carried out."]
    unresolved = [
        line[2:] for line in _strategic_section_lines(report, "Left open") if line.startswith("- ")
    ]
    notes = " ".join(_strategic_section_lines(report, "Remarks"))
    refusals = 0
    while refusals < 3:
        arguments = {
            "summary": " ".join(summary)[:2000],
            "deliverables": deliverables,
            "confidence": 0.6 if unresolved else 0.8,
            "notes": notes[:2000] or "Worked through by the rehearsal model, by rules.",
        }
        if unresolved:
            arguments["unresolved"] = unresolved[:50]
        result = yield from call_procedure_tool("job_complete", **arguments)
        if not is_error_result(result):
            break
        refusals += 1
        if (file := _RESULT_FILE.search(result)) and RESULT_SCHEMA in result:
            deliverables = list(dict.fromkeys([*deliverables, file[1]]))
            yield from _write_typed_result(file[1])
            continue
        if open_items := _OPEN_ITEM.findall(result):
            yield from call_procedure_tool(
                "drop_item", ids=open_items, reason="No step of the plan came to it."
            )
        # List what the refusal names as unresolved, since this model cannot deliver it.
        named = [path for path in deliverables if path in result]
        deliverables = [path for path in deliverables if path not in named]
        unresolved = [*unresolved, f"{', '.join(named) or 'completion'}: {result[:300]}"]
    return "The job is complete." if refusals < 3 else "Completion was refused; see the reasons."


def _write_typed_result(path: str) -> Steps:
    """Write a result that fits the job's schema, by the schema alone."""
    try:
        schema = json.loads("\n".join((yield from read_file_from_tool_answers(RESULT_SCHEMA))))
    except ValueError:
        return f"{RESULT_SCHEMA} could not be read."
    content = json.dumps(example_value(schema), ensure_ascii=False, indent=2) + "\n"
    yield from call_tool_with_retry("write_file", path=path, content=content)
    return f"Wrote {path}."


def _shorten_workspace_page(view: RequestView) -> Steps:
    text = view.workspace[: SHORT_WORKSPACE // 2] + "\n\n## Progress\n\n- see `notes/`\n"
    return (yield from call_tool_with_retry("write_file", path="workspace.md", content=text))


def _strategic_section_lines(lines: list[str], heading: str) -> list[str]:
    """Return the lines under a `## heading`."""
    section: list[str] = []
    inside = False
    for line in lines:
        if re.match(r"#{1,2} ", line):
            inside = line == f"## {heading}"
        elif inside and line.strip():
            section.append(line)
    return section


def _strategic_note_path(number: int) -> str:
    return f"notes/phase_{number:03d}.md"
