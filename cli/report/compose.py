"""Composes a job's report from what was read of it: no I/O, no clock."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from cli.jobs import Seen
from cli.report import kept, patterns
from cli.report.data import (
    BARS,
    MOST_LISTED,
    Decision,
    Figures,
    Head,
    Item,
    Pattern,
    PhaseLine,
    RefusalLine,
    Report,
    Scope,
)
from cli.report.kept import Began, Kept
from cli.report.tally import Tally, folded, grouped
from cli.report.words import line, text, tidy
from protocol import scope as ledger
from protocol.requests import Usage
from protocol.state import ScopeItem

FORGOTTEN = (
    "Temporal no longer has this job: tokens by step, refusals and waiting times are not known."
)
CUT = "Temporal has forgotten the job's first runs: what is told by step begins later."
BROKEN = (
    "The job's first checkpoints are damaged or not in this store: what they tell begins later."
)
NO_WORKER = "No worker answered: the last state on record is shown, nudges are not known."


def compose(
    job_id: str,
    seen: Seen | None,
    tally: Tally | None,
    held: Kept,
    traces: list[dict[str, Any]],
    *,
    now: datetime,
    whole: bool = False,
    link: str | None = None,
) -> Report:
    """The report, from what was read.

    Args:
        seen: None for a job that Temporal has forgotten.
        tally: The same.
        now: When the report is made.
        whole: Whether the tally is over the whole history.
    """
    status = seen.status if seen else {}
    result = status.get("result") or (held.result.model_dump() if held.result else {})
    counted = tally if whole else None
    refusals = tally.refusals if tally else []
    head = _head(job_id, seen, held, result, now, link)
    phases = [_phase(began, held, tally) for began in held.began]
    _close(phases, head, held)
    figures = _figures(status, result, counted, held, head)
    if counted:
        # A fork's status goes on counting from where it left the first job.
        figures.steps = len(counted.steps)
        refusals = _count_refusals(figures, refusals)
    still_open = kept.unexplained(held, result) if head.status == "completed" else []
    figures.completions_accepted = int(head.status == "completed")
    figures.completions_let_through = int(bool(still_open))
    # A job that was put back begins its count of steps elsewhere than at 1, as does a fork.
    shift = max(0, int(status.get("step") or 0) - len(tally.steps)) if tally else 0
    return Report(
        job=head,
        figures=figures,
        phases=phases,
        waits=tally.waits if tally else [],
        steps=_shifted(folded(tally.steps, BARS), shift) if tally else [],
        refusals=_shifted(grouped(refusals), shift),
        scope=_scope(held.state.scope),
        deliverables=[
            one.model_copy(update={"path": line(one.path), "problem": line(one.problem)})
            for one in kept.deliverables(held, result)
        ],
        unresolved=[line(entry) for entry in (result.get("unresolved") or [])[:MOST_LISTED]],
        decisions=[_decision(each) for each in status.get("approvals") or []][-MOST_LISTED:],
        remarks_of_people=[line(each.line) for each in held.state.remarks[-MOST_LISTED:]],
        notices=[line(notice) for notice in (seen.notices if seen else [])[-MOST_LISTED:]],
        traces=[tidy(trace) for trace in traces[:MOST_LISTED]],
        patterns=_patterns(head, figures, phases, held, result, still_open, refusals, traces),
        remarks=_remarks(seen, held, whole=whole, traces=len(traces)),
    )


def _head(
    job_id: str,
    seen: Seen | None,
    held: Kept,
    result: dict[str, Any],
    now: datetime,
    link: str | None,
) -> Head:
    status = seen.status if seen else {}
    waiting = (seen.waiting if seen else None) or {}
    ended = seen.ended if seen else datetime.fromtimestamp(held.last_at, UTC)
    return Head(
        id=line(job_id),
        title=line(status.get("title")),
        agent=line(status.get("agent") or held.agent, 100),
        model=line(status.get("model") or held.model, 100),
        status=line(seen.word if seen else result.get("status") or "closed", 40),
        error=text(status.get("error"), 1000),
        waiting=line(waiting.get("reason"), 40),
        message=text(waiting.get("message"), 1000),
        remedy=text(waiting.get("remedy"), 1000),
        summary=text(result.get("summary")),
        confidence=result.get("confidence"),
        notes=text(result.get("notes")),
        started=seen.started if seen else datetime.fromtimestamp(held.first_at, UTC),
        ended=ended,
        read=now,
        link=link if seen else None,
    )


def _phase(began: Began, held: Kept, tally: Tally | None) -> PhaseLine:
    phase, page = began.phase, held.pages.get(began.phase.number)
    spent = tally.phases.get(phase.number) if tally else None
    used = spent.usage if spent else Usage()
    if phase.number == held.state.phase.number:
        phase = held.state.phase
    return PhaseLine(
        number=phase.number,
        kind=phase.kind,
        purpose=phase.purpose,
        name=line(phase.name, 120),
        outcome=line(page.outcome, 40) if page else "running",
        undone=page.undone if page else False,
        issue=line(page.issue) if page else "",
        by=line(page.by, 100) if page else "",
        todos=page.todos if page else len(phase.todos),
        todos_done=page.done if page else len(phase.todos) - phase.open_count,
        started=spent.started if spent else datetime.fromtimestamp(began.at, UTC),
        ended=spent.ended if spent else None,
        model_calls=used.model_calls,
        sent_calls=used.sent_calls,
        tool_calls=used.tool_calls,
        refused_calls=used.refused_calls,
        failed_calls=used.failed_calls,
        prompt_tokens=used.prompt_tokens,
        completion_tokens=used.completion_tokens,
        cost=used.cost,
        refusals=spent.refusals if spent else 0,
    )


def _close(phases: list[PhaseLine], head: Head, held: Kept) -> None:
    """A phase ends where the next begins; the last one with the job, or with what it did last."""
    for phase, following in pairwise(phases):
        phase.ended = max(phase.started, following.started)
    if phases:
        last = phases[-1]
        end = head.ended or last.ended or datetime.fromtimestamp(held.last_at, UTC)
        last.ended = max(last.started, end)


def _figures(
    status: dict[str, Any], result: dict[str, Any], tally: Tally | None, held: Kept, head: Head
) -> Figures:
    told = status.get("usage") or (tally.usage.model_dump() if tally else result.get("usage")) or {}
    used = Usage.model_validate(told)
    asked = status.get("clarification") or {}
    waited = None
    if tally:
        ends = ((wait.ended or head.read) - wait.started for wait in tally.waits)
        waited = sum(end.total_seconds() for end in ends)
    return Figures(
        phases=held.state.phase.number if not held.began else len(held.began) + held.left_out,
        steps=int(status.get("step") or held.replies),
        rewinds=int(status.get("rewinds") or result.get("rewinds") or held.state.rewinds),
        refusals=int(status.get("refusals") or 0),
        nudges=status.get("nudges"),
        clarifications=asked.get("used", tally.questions if tally else None),
        retries=tally.retries if tally else None,
        wall_seconds=(head.ended or head.read).timestamp() - head.started.timestamp()
        if head.started
        else None,
        waiting_seconds=waited,
        **used.model_dump(exclude={"estimated_tokens"}),
    )


def _count_refusals(figures: Figures, refusals: list[RefusalLine]) -> list[RefusalLine]:
    """Count what was refused; with it come those that only the job itself has counted."""
    rows = [row for row in refusals if row.kind != "tool error"]
    known = sum(row.count for row in rows)
    figures.refusals = max(figures.refusals, known)
    figures.text_replies = sum(row.count for row in rows if row.kind == "reply")
    figures.tool_errors = sum(row.count for row in refusals if row.kind == "tool error")
    figures.completions_refused = sum(
        row.count for row in rows if row.tool == "job_complete" and row.kind != "phase rule"
    )
    if figures.refusals == known:
        return refusals
    rest = figures.refusals - known
    return [
        *refusals,
        RefusalLine(kind="signal", by="signals that could not be taken", count=rest),
    ]


def _patterns(
    head: Head,
    figures: Figures,
    phases: list[PhaseLine],
    held: Kept,
    result: dict[str, Any],
    still_open: list[str],
    refusals: list[RefusalLine],
    traces: list[dict[str, Any]],
) -> list[Pattern]:
    """What is looked for in every job, with what is quoted in it made fit."""
    plans = [(began.phase.number, began.plan) for began in held.began]
    found = [
        patterns.premature(still_open, figures.completions_refused),
        patterns.planning_only(phases),
        patterns.swinging([*plans, (held.state.phase.number, held.plan)]),
        patterns.repeated(refusals),
        patterns.self_assessment(
            head.confidence,
            len(result.get("unresolved") or []),
            figures.completions_refused or 0,
            held.failing,
            closed=bool(result),
        ),
        patterns.unretrieved(traces),
        patterns.generic(traces),
    ]
    return [
        one.model_copy(update={"details": [line(detail) for detail in one.details]})
        for one in found
    ]


def _decision(approval: dict[str, Any]) -> Decision:
    decided = approval.get("decided")
    who = "nobody in time" if approval.get("expired") else approval.get("by")
    return Decision(
        tool=line(approval.get("tool"), 80),
        guard=line(approval.get("guard"), 80),
        approved=bool(approval.get("approved")),
        by=line(who, 100),
        at=datetime.fromtimestamp(decided, UTC) if decided else None,
        reason=line(approval.get("reason")),
    )


def _scope(items: list[ScopeItem]) -> Scope:
    first = sorted(items, key=lambda item: item.status == "completed")
    return Scope(
        **ledger.standing(items),
        items=[
            Item(
                id=line(item.id, 40),
                text=line(item.text),
                status=item.status,
                source=item.source,
                reason=line(item.reason),
            )
            for item in first[:MOST_LISTED]
        ],
    )


def _shifted(rows: list[Any], by: int) -> list[Any]:
    """Rows with the numbers of their steps moved on."""
    if by:
        for row in rows:
            for name in ("first", "last", "first_step", "last_step"):
                if getattr(row, name, None) is not None:
                    setattr(row, name, getattr(row, name) + by)
    return rows


def _remarks(seen: Seen | None, held: Kept, *, whole: bool, traces: int) -> list[str]:
    told = []
    if seen is None:
        told.append(FORGOTTEN)
    elif not seen.live:
        told.append(NO_WORKER)
    if seen and not whole:
        told.append(CUT)
    if held.breaks_off:
        told.append(BROKEN)
    for count, what in (
        (held.left_out, "earlier phases"),
        (len(held.state.scope) - MOST_LISTED, "completed items of the scope"),
        (traces - MOST_LISTED, "traces"),
    ):
        if count > 0:
            told.append(f"{count:,} {what} are not listed.")
    return told
