"""The report of a job, composed from its history, its checkpoints and the store."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from temporalio.client import Client

from activities.checkpoints import Files, FilesError, PathRefused
from activities.job.deliverables import is_named_unresolved
from cli.jobs.job_view import JobView
from cli.report import failure_patterns
from cli.report.checkpoint_facts import CheckpointFacts, PhaseStart
from cli.report.refusals import merge_refusals
from cli.report.report_content import (
    BARS,
    MOST_LISTED,
    Deliverable,
    Figures,
    Pattern,
    PhaseLine,
    Proof,
    RefusalLine,
    Report,
)
from cli.report.report_store_reader import ReportStoreReader
from cli.report.sanitize import sanitize_data, sanitize_line, sanitize_model
from cli.report.tally import Passed, Tally, fold_step_bars, tally_history
from engine.web_ui import answering_web_ui_link
from protocol.endings import COMPLETION_FILE, JobResult
from protocol.phase import Phase
from protocol.status import JobStatus, state_fields
from protocol.usage import Usage

FORGOTTEN = (
    "Temporal no longer has this job: tokens by step, refusals and waiting times are not known."
)
CUT = "Temporal has forgotten the job's first runs: what is listed by step begins later."
BROKEN = "The job's first checkpoints are damaged or not in this store: what they say begins later."
NO_WORKER = "No worker answered: the last state on record is shown, nudges are not known."
NOTHING_DONE = "nothing was done: no file of the work changed, and no item rests on a look"


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
    status = _compose_job_status(job_id, job_view, facts)
    refusals = tally.refusals if tally else []
    report = Report(
        status=status,
        started=job_view.started if job_view else datetime.fromtimestamp(facts.first_at, UTC),
        ended=job_view.ended if job_view else datetime.fromtimestamp(facts.last_at, UTC),
        read=now,
        link=link if job_view else None,
        figures=_compose_job_figures(status, tally if complete else None, facts),
        phases=[_compose_phase_line(began, facts, tally) for began in facts.phase_starts],
        waits=tally.waits if tally else [],
        evidence=list_proofs(facts, tally if complete else None, status.status)[-MOST_LISTED:],
        deliverables=[sanitize_model(each) for each in list_deliverables(facts, status.result)],
        traces=[sanitize_data(trace) for trace in traces[:MOST_LISTED]],
        remarks=_compose_report_remarks(job_view, facts, complete=complete, traces=len(traces)),
    )
    _set_phase_ends(report, facts)
    _set_times(report, tally if complete else None)
    if tally and complete:
        # The status of a fork continues the original job's count.
        report.figures.steps = len(tally.steps)
        refusals = _set_refusal_figures(report.figures, refusals)
    is_completed = status.status == "completed"
    still_open = unexplained_open_work(facts, status.result) if is_completed else []
    report.figures.completions_accepted = int(is_completed)
    report.figures.completions_let_through = int(bool(still_open))
    # After a rewind or in a fork, the job's step numbers do not begin with 1.
    shift = max(0, status.step - len(tally.steps)) if tally else 0
    bars = fold_step_bars(tally.steps, BARS) if tally else []
    report.steps = _renumber_report_steps(bars, shift)
    report.refusals = _renumber_report_steps(merge_refusals(refusals), shift)
    report.patterns = _compose_failure_patterns(report, facts, still_open, refusals, traces)
    return report


def _compose_job_status(job_id: str, job_view: JobView | None, facts: CheckpointFacts) -> JobStatus:
    """Return the job's status, safe to show, with what its newest checkpoint has."""
    known = job_view.status if job_view else None
    if not isinstance(known, JobStatus):
        status = facts.result.status if facts.result else "closed"
        known = JobStatus(job_id=job_id, status=status, rewinds=facts.state.rewinds)
    result = known.result or facts.result
    newer = {
        "agent": known.agent or facts.agent,
        "model": known.model or facts.model,
        "result": result,
        "details": "",
        **state_fields(facts.state, ended=result is not None),
    }
    return sanitize_model(known.model_copy(update=newer))


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
        todos=len(page.todos) - page.not_needed if page else phase.progress[1],
        todos_done=len(page.completed) if page else phase.progress[0],
        todos_not_needed=page.not_needed if page else 0,
        started=spent.started if spent else datetime.fromtimestamp(start.timestamp, UTC),
        ended=spent.ended if spent else None,
        refusals=spent.refusals if spent else 0,
        **used.model_dump(),
    )


def _set_phase_ends(report: Report, facts: CheckpointFacts) -> None:
    """Set the end of each phase: the start of the next, or the end of the job or of its last
    activity.
    """
    for phase, following in pairwise(report.phases):
        phase.ended = max(phase.started, following.started)
    if report.phases:
        last = report.phases[-1]
        end = report.ended or last.ended or datetime.fromtimestamp(facts.last_at, UTC)
        last.ended = max(last.started, end)


def _set_times(report: Report, tally: Tally | None) -> None:
    end = report.ended or report.read
    if report.started:
        report.figures.wall_seconds = end.timestamp() - report.started.timestamp()
    if tally:
        ends = ((wait.ended or report.read) - wait.started for wait in tally.waits)
        report.figures.waiting_seconds = sum(each.total_seconds() for each in ends)


def _compose_job_figures(status: JobStatus, tally: Tally | None, facts: CheckpointFacts) -> Figures:
    used, result = status.usage, status.result
    if used == Usage():
        used = tally.usage if tally else result.usage if result else used
    questions = status.clarification.used if status.live else None
    return Figures(
        phases=facts.state.phase.number
        if not facts.phase_starts
        else len(facts.phase_starts) + facts.omitted_phases,
        steps=status.step or facts.replies,
        rewinds=status.rewinds or (result.rewinds if result else 0) or facts.state.rewinds,
        refusals=status.refusals,
        nudges=status.nudges if status.live else None,
        clarifications=tally.questions if tally and questions is None else questions,
        retries=tally.retries if tally else None,
        **used.model_dump(),
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
    report: Report,
    facts: CheckpointFacts,
    still_open: list[str],
    refusals: list[RefusalLine],
    traces: list[dict[str, Any]],
) -> list[Pattern]:
    """Look for the known patterns, with quoted text made safe to show."""
    figures, phases, result = report.figures, report.phases, report.status.result
    plans = [(began.phase.number, began.plan) for began in facts.phase_starts]
    shown = [
        failure_patterns.premature_completion_pattern(still_open, figures.completions_refused),
        failure_patterns.planning_only_pattern(phases, has_work=facts.has_work),
        failure_patterns.swinging_plans_pattern(
            [*plans, (facts.state.phase.number, facts.plan)],
            {phase.number for phase in phases if phase.undone},
        ),
        failure_patterns.repeated_refusals_pattern(refusals),
        failure_patterns.self_assessment_pattern(
            result.confidence if result else None,
            len(result.unresolved) if result else 0,
            figures.completions_refused or 0,
            facts.failing,
            closed=result is not None,
        ),
        failure_patterns.unretrieved_traces_pattern(traces, report.read),
        failure_patterns.generic_reflections_pattern(traces),
    ]
    return [sanitize_model(pattern) for pattern in shown]


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


def list_deliverables(facts: CheckpointFacts, result: JobResult | None) -> list[Deliverable]:
    """Inspect the declared deliverables; for a running job, the files in `output/`."""
    if result and result.deliverables:
        paths = result.deliverables
    else:
        has_output = facts.files.entry("output") is not None
        entries = facts.files.walk("output") if has_output else iter(())
        paths = [
            entry.path
            for entry in entries
            if entry.kind == "file" and entry.path != COMPLETION_FILE
        ]
    return [_inspect_deliverable(facts.files, path) for path in paths[:MOST_LISTED]]


def unexplained_open_work(facts: CheckpointFacts, result: JobResult | None) -> list[str]:
    """Return what was open, missing or unmet when a job completed, and is not explained in
    `unresolved`; and that nothing was done.
    """
    entries, state = result.unresolved if result else [], facts.state
    # Where `job_complete` is the end of a list, it completes the list.
    ended = f"Phase {state.phase.plan_position}" if state.phase.ends_job else ""
    phases = [
        f"{label}: {name} is open in plan.md"
        for label, name in facts.open_plan_phases
        if label != ended and not is_named_unresolved(label, name, entries)
    ]
    items = [
        f"item {item.id} is open: {item.text}"
        for item in (state.open_scope if ended else state.open_items)
        if not is_named_unresolved(item.id, item.text, entries)
    ]
    missing = [
        f"{deliverable.path}: {deliverable.problem}"
        for deliverable in list_deliverables(facts, result)
        if deliverable.problem
    ]
    unmet = [
        f"item {row.id} was judged unmet: {row.finding or row.statement}"
        for row in (result.contract if result else [])
        if row.verdict == "unmet" and not row.is_accepted and not row.reason
    ]
    idle = [] if facts.has_work or facts.has_claim else [NOTHING_DONE]
    return [*phases, *items, *missing, *unmet, *idle]


def _inspect_deliverable(files: Files, path: str) -> Deliverable:
    try:
        entry = files.entry(path)
        if entry is None:
            return Deliverable(path=path, files=0, problem="does not exist")
        if entry.kind != "folder":
            size = entry.size
            return Deliverable(path=path, bytes=size, problem="" if size else "is empty")
        inside = [inner for inner in files.walk(entry.path) if inner.kind == "file"]
    except (FilesError, PathRefused) as problem:
        return Deliverable(path=path, files=0, problem=str(problem))
    size = sum(inner.size for inner in inside)
    return Deliverable(
        path=path, bytes=size, files=len(inside), problem="" if inside else "is an empty folder"
    )


JUDGE = "the judge said yes"
REVIEW = "the review found nothing unmet"


def list_proofs(facts: CheckpointFacts, tally: Tally | None, status: str) -> list[Proof]:
    """Return verified claims by phase, without phases that a rewind undid.

    Args:
        facts: Facts from the job's checkpoints.
        tally: Tally of the whole history; None if unknown, and then the ends of phases and the job
            are left out.
        status: The job's status.
    """
    proofs: list[Proof] = []
    for began in facts.phase_starts:
        page = facts.pages.get(began.phase.number)
        if page and page.undone:
            continue
        running = began.phase.number == facts.state.phase.number
        phase = facts.state.phase if running else began.phase
        done = page.completed if page else frozenset(t.id for t in phase.todos if t.done)
        proofs += _todo_claim_proofs(phase, done)
        ended = bool(page and page.outcome == "completed") or (running and status == "completed")
        if tally and ended:
            proofs += _ending_claim_proofs(phase, facts, tally.passed, ends_job=running)
    return proofs


def _todo_claim_proofs(phase: Phase, done: frozenset[int]) -> Iterator[Proof]:
    for todo in phase.todos:
        if todo.done_when and todo.id in done:
            yield Proof(
                phase=phase.number,
                claim=sanitize_line(f"todo {todo.id}: {todo.content}"),
                held=sanitize_line(todo.done_when.line),
                by="done_when",
            )


def _ending_claim_proofs(
    phase: Phase, facts: CheckpointFacts, passed: list[Passed], *, ends_job: bool
) -> Iterator[Proof]:
    """Return those who accepted an end at their last check, as proofs."""
    claim = "the job is complete" if ends_job else f"phase {phase.number} is done"
    last = {each.by: each for each in passed if each.phase == phase.number}
    if guards := last.get("guards"):
        for verifier in facts.verifiers:
            runs_here = ends_job or phase.kind in verifier.phases
            if runs_here and verifier.name != guards.bypassed:
                yield Proof(
                    phase=phase.number,
                    claim=claim,
                    held=sanitize_line(f"{verifier.name}: `{verifier.command}` ended with 0"),
                    by="verifier",
                )
    if "judge" in last:
        yield Proof(phase=phase.number, claim=claim, held=JUDGE, by="judge")
    if "review" in last and ends_job:
        yield Proof(phase=phase.number, claim=claim, held=REVIEW, by="review")
