"""Procedures for the todos of strategic phases: survey, plan, take stock, hand over, finish.

Which procedure a todo gets is decided by what it names (`workspace.md`, `todo_write`, …), since
every agent may word its predefined todos differently.
"""

from __future__ import annotations

import re
from typing import Any

from rehearsal import extraction, generalist, plans, team, validation
from rehearsal.plans import counted
from rehearsal.replay import Steps, closing, insist, once, together
from rehearsal.request_view import View, failed
from rehearsal.tool_answers import documents_of, list_paths, read_all

_OPEN_ITEM = re.compile(r"(?:open:|;) ([SPA]\d+) ")
MAX_SHOWN = 40
MAX_PROGRESS = 20
MAX_LIST = 100
SHORT_WORKSPACE = 6000


def procedure(view: View, text: str) -> Steps:
    """The procedure for a strategic todo."""
    wanted = text.lower()
    if "todo_write" in wanted:
        return hand_over(view)
    if "job_complete" in wanted:
        return team.finish_role(view) if view.agent in team.ROLES else finish(view)
    if "output/summary.md" in wanted or validation.REPORT in wanted:
        return _report(view)
    if "workspace.md" in wanted:
        return survey(view) if view.bootstrap else update_workspace(view)
    if "plan.md" in wanted and view.bootstrap:
        return check_plan() if wanted.startswith("check") else write_plan(view)
    if "plan.md" in wanted:
        return revise_plan(view) if view.issue or "revise" in wanted else mark_progress(view)
    if wanted.startswith("verify"):
        return verify()
    return take_notes(view, text)


def extracts(view: View) -> bool:
    """Whether the job is one of finding requirements."""
    if validates(view):
        return False
    return view.agent == "creator" or "identify_requirement_candidates" in view.opening


def validates(view: View) -> bool:
    """Whether the job is one of deciding on requirements."""
    return view.agent == "validator" or "`take_requirement`" in view.opening


def _report(view: View) -> Steps:
    if extracts(view):
        return extraction.report()
    return validation.report() if validates(view) else generalist.report()


def survey(view: View) -> Steps:
    _, instructions, paths = yield from together(
        once("list_files"), read_all("instructions.md"), list_paths("documents")
    )
    documents = documents_of(paths)
    texts = list(documents.values())[:3]
    heads = yield [("read_file", {"path": text, "offset": 1, "limit": 5}) for text in texts]
    seen = sum(not failed(head) for head in heads)
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
        *(extraction.PLACES if extracts(view) else []),
        *(validation.PLACES if validates(view) else []),
        "",
        "## Progress",
        "",
        "- Phase 1: surveyed the workspace and planned the work",
    ]
    note = f"Surveyed the workspace: {counted(len(documents), 'document')}, {seen} looked into."
    return (
        yield from closing(note, "write_file", path="workspace.md", content="\n".join(lines) + "\n")
    )


def write_plan(view: View) -> Steps:
    instructions, paths = yield from together(read_all("instructions.md"), list_paths("documents"))
    documents = documents_of(paths)
    text = "\n".join(instructions) or view.opening
    if extracts(view):
        plan = extraction.plan(list(documents))
    elif validates(view):
        plan = validation.plan()
    else:
        plan = team.plan(text) or generalist.plan(text, documents, view.open_items)
    note = f"Wrote plan.md with {counted(len(plan.phases), 'phase')}."
    return (yield from closing(note, "write_file", path="plan.md", content=plan.text))


def check_plan() -> Steps:
    plan = plans.parse((yield from read_all("plan.md")))
    steps = ", ".join(str(len(phase.steps)) for phase in plan.phases)
    return (
        f"The plan has {counted(len(plan.phases), 'phase')} with {steps or 'no'} steps; it stands."
    )


def mark_progress(view: View) -> Steps:
    plan = plans.parse((yield from read_all("plan.md")))
    finished = plan.open
    if finished is None:
        return "The plan has no open phase."
    before = finished.boxes
    # Where its todos covered the boxes, the system has ticked them, and the next phase is open.
    ticked = view.ended not in ("", finished.name)
    finished.done = not ticked
    grown = False
    if extraction.may_grow(plan):
        grown = yield from extraction.grow(plan)
        for item, text in view.open_items.items():
            if text == extraction.LATER:
                reason = "The candidates are counted; the batches take the place of this step."
                yield from once("drop_item", id=item, reason=reason)
    if validates(view):
        grown = yield from validation.grow(plan)
    ahead = counted(sum(not phase.done for phase in plan.phases), "phase")
    if ticked and not grown:
        return f"{view.ended!r} is ticked in plan.md; {ahead} ahead."
    result = "Error"
    if not grown:
        result = yield from once("edit_file", path="plan.md", old=before, new=finished.boxes)
    if failed(result):
        yield from insist("write_file", path="plan.md", content=plan.text)
    return f"Marked progress in plan.md; {ahead} ahead."


def revise_plan(view: View) -> Steps:
    lines, asked = yield from together(read_all("plan.md"), read_all("instructions.md"))
    plan, told = plans.parse(lines), "\n".join(asked)
    if "## Amended" in told and plan.open is None and (more := team.plan(told)):
        plan.phases += more.phases
    plan.head += f"\n\nRevised in phase {view.number}, because: {view.issue or 'see notes/'}"
    note = "Noted the issue in plan.md; the open phase is done again from its start."
    return (yield from closing(note, "write_file", path="plan.md", content=plan.text))


def hand_over(view: View) -> Steps:
    if "workspace.md" in view.refusal:
        yield from _shorten_workspace(view)
    plan = plans.parse((yield from read_all("plan.md")))
    if not plan.phases and view.refusal:
        yield from write_plan(view)
        plan = plans.parse((yield from read_all("plan.md")))
    phase = plan.open
    if phase is None:
        return "The plan has no open phase; there is nothing to hand over."
    fewest, most = view.todo_limits
    steps = plans.fit(phase.steps, fewest, most, phase.name)
    again = extraction.AGAIN if view.issue else ""
    todos: list[dict[str, Any]] = [
        {"id": n, "content": step[:450] + again} for n, step in enumerate(steps, 1)
    ]
    plans.cover(todos, view.open_items, last=sum(not other.done for other in plan.phases) == 1)
    yield from insist(
        "todo_write", phase=phase.name, description=phase.objective[:1000], todos=todos
    )
    return f"Handed over {phase.name!r} with {counted(len(todos), 'todo')}."


def update_workspace(view: View) -> Steps:
    before = view.workspace or "# Workspace\n\n## Progress\n"
    head, _, progress = before.partition("## Progress")
    kept = [line for line in progress.splitlines() if line.startswith("- ")][-MAX_PROGRESS:]
    done = view.number - 1
    kept.append(f"- Phase {done}: done, see `{_note_path(done)}`")
    if view.issue:
        kept.append(f"- Phase {done} was taken back: {view.issue[:200]}")
    text = f"{head.strip()[:SHORT_WORKSPACE]}\n\n## Progress\n\n" + "\n".join(kept) + "\n"
    note = "workspace.md says what is done and where it is."
    return (yield from closing(note, "write_file", path="workspace.md", content=text))


def take_notes(view: View, text: str) -> Steps:
    """Summaries of a phase, failure notes, and any todo this model has no rule for."""
    done = view.number - 1
    todo = view.current.id if view.current else 0
    first = view.todos[0].id if view.todos else todo
    path = _note_path(done) if todo == first else f"notes/phase_{view.number:03d}_{todo}.md"
    facts = [line for line in view.archive.splitlines() if line.lstrip().startswith(("-", "☑"))]
    lines = [f"# Notes on phase {done}", "", text, ""]
    if view.issue:
        lines += [f"The phase was taken back. The issue: {view.issue}", ""]
        lines += ["Two approaches were weighed: to go on from where the work stopped, and to do"]
        lines += ["the open phase again from its start. The second is chosen: it is safe.", ""]
    lines += ["## What the archive says", "", *(facts[:MAX_SHOWN] or ["- nothing"]), ""]
    return (yield from closing(f"Wrote {path}.", "write_file", path=path, content="\n".join(lines)))


def verify() -> Steps:
    paths = yield from list_paths("output")
    heads = yield [("read_file", {"path": path, "offset": 1, "limit": 60}) for path in paths[:4]]
    seen = sum(not failed(head) for head in heads)
    return f"Read {seen} of {counted(len(paths), 'file')} in output/; each has content."


def finish(view: View) -> Steps:
    source = validation.REPORT if validates(view) else "output/summary.md"
    paths, report = yield from together(list_paths("output"), read_all(source))
    deliverables = [path for path in paths if path != "output/completion.json"][:MAX_LIST]
    summary = _section(report, "What was done") or ["The plan was carried out."]
    unresolved = [line[2:] for line in _section(report, "Left open") if line.startswith("- ")]
    notes = " ".join(_section(report, "Remarks"))
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
        result = yield from once("job_complete", **arguments)
        if not failed(result):
            break
        refusals += 1
        for item in _OPEN_ITEM.findall(result):
            yield from once("drop_item", id=item, reason="No step of the plan came to it.")
        # What the refusal names cannot be delivered: it is listed as unresolved instead.
        named = [path for path in deliverables if path in result]
        deliverables = [path for path in deliverables if path not in named]
        unresolved = [*unresolved, f"{', '.join(named) or 'completion'}: {result[:300]}"]
    return "The job is complete." if refusals < 3 else "Completion was refused; see the reasons."


def _shorten_workspace(view: View) -> Steps:
    text = view.workspace[: SHORT_WORKSPACE // 2] + "\n\n## Progress\n\n- see `notes/`\n"
    return (yield from insist("write_file", path="workspace.md", content=text))


def _section(lines: list[str], heading: str) -> list[str]:
    """The lines under a `## heading`."""
    found: list[str] = []
    inside = False
    for line in lines:
        if re.match(r"#{1,2} ", line):
            inside = line == f"## {heading}"
        elif inside and line.strip():
            found.append(line)
    return found


def _note_path(number: int) -> str:
    return f"notes/phase_{number:03d}.md"
