"""The outline of a job."""

import json
from collections.abc import Sequence

from protocol import outline
from protocol.contract import ContractRow, not_accepted_line
from protocol.endings import JobResult, TypedResult
from protocol.publishing import BranchResult
from protocol.short_text import count_noun, first_few, one_line
from protocol.status import JobStatus, TodoStatus

MOST_RESULT = 1000
"""Characters of a typed result that are shown."""
MOST_STATEMENT = 200
CONTRACT_COLUMNS = ("Statement", "Item", "Todo", "Files and checks", "Verdict", "What was found")
PAUSING = "the job pauses once the calls of its last reply are carried out"
UNREAD = "received, and read after the step in flight"


def job_outline(status: JobStatus, notices: Sequence[object]) -> outline.Outline:
    result = status.result
    return outline.Outline(
        id=status.job_id,
        title=one_line(status.title, 80),
        word=status.status,
        ending=job_ending_line(status),
        facts=tuple(filter(None, [status.agent, status.model])),
        place=_place_line(status),
        progress=_todo_progress(status.todos),
        wait=outline.wait_line(status.waiting, status.waiting_for),
        sections=outline.outline_sections(
            [
                outline.needs_section(
                    status,
                    PAUSING if status.pausing else "",
                    f"{UNREAD}: {', '.join(status.unread)}" if status.unread else "",
                    f"the agent waits until {status.waits_until}" if status.waits_until else "",
                    "the completion is under review" if status.reviewing else "",
                    f"{count_noun(status.helpers, 'helper')} at work" if status.helpers else "",
                ),
                *(_result_sections(result) if result else ()),
                outline.Section(
                    "scope",
                    "Contract",
                    rows=tuple(map(_contract_row, result.contract)),
                    columns=CONTRACT_COLUMNS,
                )
                if result and result.contract
                else outline.scope_section(status.scope, status.items),
                _list_section(status),
                _figures_section(status),
                outline.Section(
                    "place",
                    rows=outline.text_rows(
                        outline.origin_line(status.origin),
                        f"checkpoint {status.checkpoint}" if status.checkpoint else "",
                        outline.remote_line(status.remote, ended=result is not None),
                    ),
                ),
                outline.notices_section(notices),
            ]
        ),
    )


def job_ending_line(status: JobStatus) -> str:
    if status.result is None:
        return status.status
    return status.result.model_copy(update={"status": status.status}).ending_line


def _place_line(status: JobStatus) -> str:
    """`phase 2 · tactical · Extraction · plan 1 of 3`."""
    if status.details:
        return status.details
    phase, plan = status.phase, status.plan
    if phase is None:
        return ""
    place = f"plan {plan.position} of {plan.total}" if plan.total else ""
    return " · ".join(filter(None, [f"phase {phase.number}", phase.kind, phase.name, place]))


def _todo_progress(todos: Sequence[TodoStatus]) -> tuple[int, int]:
    needed = [todo for todo in todos if todo.status != "passed over"]
    return sum(todo.status == "completed" for todo in needed), len(needed)


def _list_section(status: JobStatus) -> outline.Section:
    rows = tuple(
        outline.Row(
            f"{todo.id}. {todo.content}" + (" (passed over)" * (todo.status == "passed over")),
            outline.mark(todo.status),
        )
        for todo in status.todos
    )
    done, total = _todo_progress(status.todos)
    lead = f"{done} of {total} done" if total else ""
    return outline.Section("list", _place_line(status), lead, rows)


def _result_sections(result: JobResult) -> list[outline.Section]:
    about = outline.text_rows(
        not_accepted_line(result.contract),
        result.summary,
        job_result_line(result.result) if result.result else "",
        f"confidence {result.confidence}" if result.confidence is not None else "",
        result.notes,
    )
    return [
        outline.Section("result", rows=about),
        outline.listed_section("deliverables", "Deliverables", result.deliverables),
        outline.listed_section("deliverables", "Unresolved", result.unresolved),
        outline.listed_section("deliverables", "Dropped", result.dropped),
        branch_section(result.branch),
    ]


def job_result_line(typed: TypedResult) -> str:
    """`result output/result.json: {"grams": 3}`, or its size if it is long."""
    content = json.dumps(typed.content, ensure_ascii=False)
    if typed.content is None or len(content) > MOST_RESULT:
        content = f"{typed.bytes:,} bytes"
    return f"result {typed.path}: {content}"


def branch_section(branch: BranchResult | None) -> outline.Section:
    if branch is None:
        return outline.Section("deliverables")
    if not branch.commit:
        return outline.Section("deliverables", "Branch", "nothing in the repository was changed")
    lead = f"{branch.branch} at {branch.commit[:12]}"
    if branch.published:
        lead += f", pushed to {branch.published}"
    about = outline.text_rows(
        *branch.files,
        *(f"changed {line}" for line in branch.changed),
        f"tests: {branch.proof}" if branch.proof else "",
        *(f"not proved: {doubt}" for doubt in branch.doubts),
    )
    return outline.Section("deliverables", "Branch", lead, about)


def _contract_row(row: ContractRow) -> outline.Row:
    todo = f"{row.phase}.{row.todo}" if row.todo else f"phase {row.phase}" if row.phase else ""
    reason = row.reason or (f"“{row.quote}”" if row.verdict == "met" and row.quote else row.finding)
    statement = one_line(row.statement, MOST_STATEMENT)
    return outline.Row(
        f"{row.id} {one_line(row.statement, MOST_STATEMENT // 2)} · {row.word}"
        + (f": {explanation}" if (explanation := row.finding or row.claim) else ""),
        cells=(
            f"{statement} ({row.place})" if row.place else statement,
            row.id,
            todo,
            "; ".join(filter(None, [first_few(row.files, 3), *row.details[len(row.files) :][-2:]])),
            row.word,
            reason,
        ),
        # A terminal shows those that were done and not accepted, and those that are only claimed.
        is_detail=(row.is_accepted and not row.claim) or bool(row.reason),
    )


def _figures_section(status: JobStatus) -> outline.Section:
    result = status.result
    phases = (result.phases if result else 0) or (status.phase.number if status.phase else 0)
    rewinds = (result.rewinds if result else 0) or status.rewinds
    used = outline.usage_line(result.usage if result and result.usage.model_calls else status.usage)
    counts = [count_noun(phases, "phase"), count_noun(rewinds, "rewind"), used]
    more = [(status.refusals, "refusal"), (status.nudges, "nudge")]
    refused = ", ".join(f"{guard} {count}" for guard, count in status.guards.refused.items())
    return outline.Section(
        "figures",
        rows=outline.text_rows(
            " · ".join(counts) if used else "",
            " · ".join(count_noun(count, noun) for count, noun in more if count),
            # How an ended job's limits stood no longer matters.
            outline.limits_line(status.limits) if result is None else "",
            f"refused by guards: {refused}" if refused else "",
            f"bypassed once: {', '.join(status.guards.bypasses)}" if status.guards.bypasses else "",
        ),
    )
