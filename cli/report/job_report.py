"""The report of a job, composed from its history, its checkpoints and the store."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from temporalio.client import Client

from cli.jobs.job_lines import contract_rows
from cli.jobs.job_view import JobView
from cli.report import failure_patterns
from cli.report.checkpoint_facts import CheckpointFacts, PhaseStart
from cli.report.claim_proofs import list_proofs
from cli.report.deliverables import list_deliverables, unexplained_open_work
from cli.report.refusals import merge_refusals
from cli.report.report_content import (
    BARS,
    MOST_LISTED,
    Act,
    Decision,
    Deliverable,
    Figures,
    Head,
    Item,
    Pattern,
    PhaseLine,
    RefusalLine,
    Report,
    Scope,
)
from cli.report.report_store_reader import ReportStoreReader
from cli.report.sanitize import sanitize_data, sanitize_line, sanitize_text
from cli.report.step_bars import fold_step_bars
from cli.report.tally import Tally, tally_history
from engine.web_ui import answering_web_ui_link
from protocol import scope_ledger as ledger
from protocol.contract import ContractRow, contract_line
from protocol.scope_ledger import ScopeItem
from protocol.usage import Usage

LISTS = ("files", "checks")
"""Fields of a contract's row that are lists of names."""
FORGOTTEN = (
    "Temporal no longer has this job: tokens by step, refusals and waiting times are not known."
)
CUT = "Temporal has forgotten the job's first runs: what is told by step begins later."
BROKEN = (
    "The job's first checkpoints are damaged or not in this store: what they tell begins later."
)
NO_WORKER = "No worker answered: the last state on record is shown, nudges are not known."


def compose_job_report(
    job_id: str,
    job_view: JobView | None,
    tally: Tally | None,
    facts: CheckpointFacts,
    traces: list[dict[str, Any]],
    *,
    now: datetime,
    complete: bool = False,
    link: str | None = None,
) -> Report:
    """Compose a report.

    Args:
        job_view: None for a job that Temporal has forgotten.
        tally: None for a job that Temporal has forgotten.
        now: Time of the report.
        complete: Whether the tally covers the whole history.
    """
    status = job_view.status if job_view else {}
    result = status.get("result") or (facts.result.model_dump() if facts.result else {})
    counted = tally if complete else None
    refusals = tally.refusals if tally else []
    head = _compose_job_head(job_id, job_view, facts, result, now, link)
    phases = [_compose_phase_line(began, facts, tally) for began in facts.phase_starts]
    _set_phase_ends(phases, head, facts)
    figures = _compose_job_figures(status, result, counted, facts, head)
    if counted:
        # The status of a fork continues the original job's count.
        figures.steps = len(counted.steps)
        refusals = _set_refusal_figures(figures, refusals)
    is_completed = head.status == "completed"
    still_open = unexplained_open_work(facts, result) if is_completed else []
    figures.completions_accepted = int(is_completed)
    figures.completions_let_through = int(bool(still_open))
    # After a rewind or in a fork, the job's step numbers do not begin with 1.
    shift = max(0, int(status.get("step") or 0) - len(tally.steps)) if tally else 0
    unresolved, approvals = result.get("unresolved") or [], status.get("approvals") or []
    notices = job_view.notices if job_view else []
    return Report(
        job=head,
        figures=figures,
        phases=phases,
        waits=tally.waits if tally else [],
        steps=_renumber_report_steps(fold_step_bars(tally.steps, BARS), shift) if tally else [],
        refusals=_renumber_report_steps(merge_refusals(refusals), shift),
        scope=_compose_scope_ledger(facts.state.scope, result),
        evidence=list_proofs(facts, tally if complete else None, head.status)[-MOST_LISTED:],
        deliverables=_compose_deliverables(facts, result),
        unresolved=[sanitize_line(each) for each in unresolved[:MOST_LISTED]],
        people=[_compose_person_act(each) for each in status.get("people") or []][-MOST_LISTED:],
        decisions=[_compose_decision(each) for each in approvals[-MOST_LISTED:]],
        remarks_of_people=[sanitize_line(each.line) for each in facts.state.remarks[-MOST_LISTED:]],
        notices=[sanitize_line(str(each)) for each in notices[-MOST_LISTED:]],
        traces=[sanitize_data(trace) for trace in traces[:MOST_LISTED]],
        patterns=_compose_failure_patterns(
            head, figures, phases, facts, result, still_open, refusals, traces, now
        ),
        remarks=_compose_report_remarks(job_view, facts, complete=complete, traces=len(traces)),
    )


def _compose_job_head(
    job_id: str,
    job_view: JobView | None,
    facts: CheckpointFacts,
    result: dict[str, Any],
    now: datetime,
    link: str | None,
) -> Head:
    status = job_view.status if job_view else {}
    waiting = (job_view.waiting if job_view else None) or {}
    ended = job_view.ended if job_view else datetime.fromtimestamp(facts.last_at, UTC)
    return Head(
        id=sanitize_line(job_id),
        title=sanitize_line(status.get("title")),
        agent=sanitize_line(status.get("agent") or facts.agent, 100),
        model=sanitize_line(status.get("model") or facts.model, 100),
        status=sanitize_line(
            job_view.status_word if job_view else result.get("status") or "closed", 40
        ),
        error=sanitize_text(status.get("error"), 1000),
        waiting=sanitize_line(waiting.get("reason"), 40),
        message=sanitize_text(waiting.get("message"), 1000),
        remedy=sanitize_text(waiting.get("remedy"), 1000),
        summary=sanitize_text(result.get("summary")),
        confidence=result.get("confidence"),
        notes=sanitize_text(result.get("notes")),
        started=job_view.started if job_view else datetime.fromtimestamp(facts.first_at, UTC),
        ended=ended,
        read=now,
        link=link if job_view else None,
    )


def _compose_deliverables(facts: CheckpointFacts, result: dict[str, Any]) -> list[Deliverable]:
    return [
        deliverable.model_copy(
            update={
                "path": sanitize_line(deliverable.path),
                "problem": sanitize_line(deliverable.problem),
            }
        )
        for deliverable in list_deliverables(facts, result)
    ]


def _compose_phase_line(
    start: PhaseStart, facts: CheckpointFacts, tally: Tally | None
) -> PhaseLine:
    phase, page = start.phase, facts.pages.get(start.phase.number)
    spent = tally.phases.get(phase.number) if tally else None
    used = spent.usage if spent else Usage()
    if phase.number == facts.state.phase.number:
        phase = facts.state.phase
    return PhaseLine(
        number=phase.number,
        kind=phase.kind,
        purpose=phase.purpose,
        name=sanitize_line(phase.name, 120),
        outcome=sanitize_line(page.outcome, 40) if page else "running",
        undone=page.undone if page else False,
        issue=sanitize_line(page.issue) if page else "",
        by=sanitize_line(page.by, 100) if page else "",
        todos=page.todos if page else phase.progress[1],
        todos_done=page.done if page else phase.progress[0],
        todos_not_needed=page.not_needed if page else 0,
        started=spent.started if spent else datetime.fromtimestamp(start.timestamp, UTC),
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


def _set_phase_ends(phases: list[PhaseLine], head: Head, facts: CheckpointFacts) -> None:
    """Set the end of each phase: the start of the next, or the end of the job or of its last
    activity.
    """
    for phase, following in pairwise(phases):
        phase.ended = max(phase.started, following.started)
    if phases:
        last = phases[-1]
        end = head.ended or last.ended or datetime.fromtimestamp(facts.last_at, UTC)
        last.ended = max(last.started, end)


def _compose_job_figures(
    status: dict[str, Any],
    result: dict[str, Any],
    tally: Tally | None,
    facts: CheckpointFacts,
    head: Head,
) -> Figures:
    usage = (
        status.get("usage") or (tally.usage.model_dump() if tally else result.get("usage")) or {}
    )
    used = Usage.model_validate(usage, extra="ignore")
    clarification = status.get("clarification") or {}
    waited = None
    if tally:
        ends = ((wait.ended or head.read) - wait.started for wait in tally.waits)
        waited = sum(end.total_seconds() for end in ends)
    return Figures(
        phases=facts.state.phase.number
        if not facts.phase_starts
        else len(facts.phase_starts) + facts.omitted_phases,
        steps=int(status.get("step") or facts.replies),
        rewinds=int(status.get("rewinds") or result.get("rewinds") or facts.state.rewinds),
        refusals=int(status.get("refusals") or 0),
        nudges=status.get("nudges"),
        clarifications=clarification.get("used", tally.questions if tally else None),
        retries=tally.retries if tally else None,
        wall_seconds=(head.ended or head.read).timestamp() - head.started.timestamp()
        if head.started
        else None,
        waiting_seconds=waited,
        **used.model_dump(
            exclude={"estimated_tokens", "unfinished_completion_tokens", "unfinished_cost"}
        ),
    )


def _set_refusal_figures(figures: Figures, refusals: list[RefusalLine]) -> list[RefusalLine]:
    """Set the counts of refusals; return them with a row for those that only the job counted."""
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


def _compose_failure_patterns(
    head: Head,
    figures: Figures,
    phases: list[PhaseLine],
    facts: CheckpointFacts,
    result: dict[str, Any],
    still_open: list[str],
    refusals: list[RefusalLine],
    traces: list[dict[str, Any]],
    now: datetime,
) -> list[Pattern]:
    """Look for the known patterns, with quoted text made safe to show."""
    plans = [(began.phase.number, began.plan) for began in facts.phase_starts]
    shown = [
        failure_patterns.premature_completion_pattern(still_open, figures.completions_refused),
        failure_patterns.planning_only_pattern(phases),
        failure_patterns.swinging_plans_pattern(
            [*plans, (facts.state.phase.number, facts.plan)],
            {phase.number for phase in phases if phase.undone},
        ),
        failure_patterns.repeated_refusals_pattern(refusals),
        failure_patterns.self_assessment_pattern(
            head.confidence,
            len(result.get("unresolved") or []),
            figures.completions_refused or 0,
            facts.failing,
            closed=bool(result),
        ),
        failure_patterns.unretrieved_traces_pattern(traces, now),
        failure_patterns.generic_reflections_pattern(traces),
    ]
    return [
        pattern.model_copy(
            update={"details": [sanitize_line(detail) for detail in pattern.details]}
        )
        for pattern in shown
    ]


def _compose_decision(approval: dict[str, Any]) -> Decision:
    decided = approval.get("decided")
    who = "nobody in time" if approval.get("expired") else approval.get("by")
    return Decision(
        tool=sanitize_line(approval.get("tool"), 80),
        guard=sanitize_line(approval.get("guard"), 80),
        approved=bool(approval.get("approved")),
        by=sanitize_line(who, 100),
        at=datetime.fromtimestamp(decided, UTC) if decided else None,
        reason=sanitize_line(approval.get("reason")),
    )


def _compose_person_act(act: dict[str, Any]) -> Act:
    did = f"{act.get('did')} ({act['id']})" if act.get("id") else act.get("did")
    return Act(
        at=datetime.fromtimestamp(act["at"], UTC) if act.get("at") else None,
        by=sanitize_line(act.get("by"), 100),
        phase=int(act.get("phase") or 0),
        did=sanitize_line(did),
        detail=sanitize_line(act.get("detail")),
        refused=sanitize_line(act.get("refused")),
    )


def _compose_scope_ledger(items: list[ScopeItem], result: dict[str, Any]) -> Scope:
    scope = [item for item in items if not item.is_step]
    first = sorted(scope, key=lambda item: item.status == "completed")
    rows = contract_rows(result)
    counts = ledger.scope_counts(items)
    return Scope(
        **{name: counts[name] for name in counts.keys() & Scope.model_fields.keys()},
        met=contract_line(int(result.get("statements") or 0), int(result.get("met") or 0), rows),
        contract=[_sanitize_contract_row(row) for row in rows],
        items=[
            Item(
                id=sanitize_line(item.id, 40),
                text=sanitize_line(item.text),
                status=item.status,
                source=item.source,
                reason=sanitize_line(item.reason),
            )
            for item in first[:MOST_LISTED]
        ],
    )


def _sanitize_contract_row(row: ContractRow) -> ContractRow:
    texts = ("id", "item", "statement", "place", "reason", "claim", "quote", "finding")
    update: dict[str, Any] = {name: sanitize_line(getattr(row, name)) for name in texts}
    update |= {name: [sanitize_line(each) for each in getattr(row, name)] for name in LISTS}
    return row.model_copy(update=update)


def _renumber_report_steps(rows: list[Any], by: int) -> list[Any]:
    """Add to the step numbers of these rows."""
    if by:
        for row in rows:
            for name in ("first", "last", "first_step", "last_step"):
                if getattr(row, name, None) is not None:
                    setattr(row, name, getattr(row, name) + by)
    return rows


def _compose_report_remarks(
    job_view: JobView | None, facts: CheckpointFacts, *, complete: bool, traces: int
) -> list[str]:
    remarks = []
    if job_view is None:
        remarks.append(FORGOTTEN)
    elif not job_view.live:
        remarks.append(NO_WORKER)
    if job_view and not complete:
        remarks.append(CUT)
    if facts.breaks_off:
        remarks.append(BROKEN)
    for count, what in (
        (facts.omitted_phases, "earlier phases"),
        (len(facts.state.scope) - MOST_LISTED, "completed items of the scope"),
        (traces - MOST_LISTED, "traces"),
    ):
        if count > 0:
            remarks.append(f"{count:,} {what} are not listed.")
    return remarks


async def build_job_report(
    client: Client, job_view: JobView, facts: CheckpointFacts, store: ReportStoreReader
) -> Report:
    tally, complete = await tally_history(client, job_view)
    link = await answering_web_ui_link(job_view.id, client.namespace)
    now, traces = datetime.now(UTC), store.traces(job_view.id)
    return compose_job_report(
        job_view.id, job_view, tally, facts, traces, now=now, complete=complete, link=link
    )
