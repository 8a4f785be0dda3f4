"""Sums over a job's events; of constant size except for one bar per model call."""

from dataclasses import dataclass, field
from datetime import datetime

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from cli.jobs.job_view import JobView
from cli.report import history
from cli.report.refusals import Refusal, derive_call_refusal, derive_reply_refusal
from cli.report.report_content import Bar, RefusalLine, Wait
from cli.report.sanitize import sanitize_line
from protocol.usage import Usage

MOST_REASONS = 2000
"""Distinct refusals kept; further ones are counted without their reasons."""
MOST_WAITS = 1000
ENDINGS = {"judge_ending": "guards", "judge_phase": "judge", "review_job": "review"}
"""Activities that decide whether something may end, with the deciding part."""


@dataclass(frozen=True)
class Passed:
    """An accepted end of a phase or job."""

    by: str
    """`guards`, `judge` or `review`."""
    phase: int
    bypassed: str = ""
    """The guard or verifier whose refusal a person bypassed."""


@dataclass
class PhaseTotals:
    """Sums of one phase."""

    started: datetime
    ended: datetime
    usage: Usage = field(default_factory=Usage)
    refusals: int = 0


@dataclass
class Tally:
    """Sums up events one by one."""

    phases: dict[int, PhaseTotals] = field(default_factory=dict)
    steps: list[Bar] = field(default_factory=list)
    """One bar per model call, in order."""
    refused: dict[tuple[str, ...], RefusalLine] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    retries: int = 0
    passed: list[Passed] = field(default_factory=list)
    """Ends of phases and of the job that guards, a judge or a review let pass."""
    questions: int = 0
    """Answered clarification questions of the agent."""
    _reply_guard: str = ""
    _ending_guard: str = ""

    def add_event(self, event: history.JobEvent) -> None:
        if not isinstance(event, history.ActivityResult):
            self._add_status(event)
            return
        self.retries += event.attempt - 1
        spent = self._phase_totals(event)
        used = Usage.model_validate(event.result.get("usage") or {}, extra="ignore")
        if event.activity == "close_job":
            used = Usage(
                tool_calls=int((event.result.get("result") or {}).get("status") == "completed")
            )
        if event.activity == "model_call":
            self._reply_guard = str(event.result.get("guard") or "")
            dropped = int(event.result.get("dropped") or 0)
            used.sent_calls = len(event.result.get("calls") or []) + dropped
            self._add_step(used)
            self._add_refusal(derive_reply_refusal(event), spent)
        elif "ok" in event.result and not event.result.get("asks"):
            refusal = derive_call_refusal(event, self._reply_guard, self._ending_guard)
            used = _tally_call_usage(event, refusal)
            self.questions += event.activity == "request_clarification" and bool(event.result["ok"])
            self._add_refusal(refusal, spent)
            self._ending_guard = ""
        elif event.activity in ENDINGS:
            self._add_ending(event)
            refused = event.result.get("refusal")
            self._ending_guard = str(event.result.get("guard") or "") if refused else ""
        self.usage.add(used)
        if spent:
            spent.usage.add(used)

    @property
    def refusals(self) -> list[RefusalLine]:
        """Refusals by origin, most frequent first."""
        return sorted(self.refused.values(), key=lambda row: (-row.count, row.by, row.tool))

    def _add_ending(self, event: history.ActivityResult) -> None:
        """Record who accepted an end; ends that a person forced do not count."""
        result = event.result
        said_no = any(result.get(key) for key in ("refusal", "finding", "asks", "guard"))
        if event.activity == "review_job":
            said_no = result.get("verdict") != "accepted"
        if event.phase and not said_no and len(self.passed) < MOST_WAITS:
            bypassed = str(result.get("bypassed_guard") or "")
            self.passed.append(Passed(ENDINGS[event.activity], event.phase, bypassed))

    def _phase_totals(self, event: history.ActivityResult) -> PhaseTotals | None:
        if not event.phase:
            return None
        spent = self.phases.setdefault(
            event.phase, PhaseTotals(event.finished_at, event.finished_at)
        )
        spent.ended = event.finished_at
        return spent

    def _add_step(self, used: Usage) -> None:
        number = self.steps[-1].last + 1 if self.steps else 1
        place = {"first": number, "last": number, "largest_prompt": used.prompt_tokens}
        self.steps.append(Bar(**place, **used.model_copy(update={"model_calls": 1}).model_dump()))

    def _add_refusal(self, refusal: Refusal | None, spent: PhaseTotals | None) -> None:
        if refusal is None:
            return
        if spent and refusal.kind != "tool error":
            spent.refusals += 1
        key = (refusal.kind, refusal.by, refusal.tool, refusal.mark)
        if key not in self.refused and len(self.refused) >= MOST_REASONS:
            key = (refusal.kind, sanitize_line(refusal.by, 60), "", "")
        step = self.steps[-1].last if self.steps else None
        row = self.refused.setdefault(
            key,
            RefusalLine(
                kind=refusal.kind,
                by=sanitize_line(refusal.by, 80),
                tool=sanitize_line(refusal.tool, 80) if key[2] else "",
                count=0,
                first_step=step,
            ),
        )
        row.count += 1
        row.reason, row.last_step = sanitize_line(refusal.reason), step

    def _add_status(self, change: history.StatusChange) -> None:
        moment, word, reason = change.changed_at, change.status, change.reason
        running = self.waits[-1] if self.waits and self.waits[-1].ended is None else None
        if running and (word != "waiting" or running.reason != reason):
            running.ended = moment
            running = None
        if word == "waiting" and running is None and len(self.waits) < MOST_WAITS:
            self.waits.append(Wait(reason=sanitize_line(reason, 40), started=moment))


def _tally_call_usage(result: history.ActivityResult, refusal: Refusal | None) -> Usage:
    """Return a call's usage, counted like the job itself counts it."""
    if refusal and refusal.kind != "tool error":
        return Usage(refused_calls=1)
    return Usage(tool_calls=1, failed_calls=int(not result.result["ok"]))


def fold_step_bars(steps: list[Bar], most: int) -> list[Bar]:
    """Return at most `most` bars with equal numbers of steps, except for the last."""
    size = -(-len(steps) // most) or 1
    bars = []
    for start in range(0, len(steps), size):
        group = steps[start : start + size]
        bar = group[0].model_copy(
            update={
                "last": group[-1].last,
                "largest_prompt": max(step.largest_prompt for step in group),
            }
        )
        for step in group[1:]:
            bar.add(step)
        bars.append(bar)
    return bars


async def tally_history(client: Client, job_view: JobView) -> tuple[Tally, bool]:
    """Return sums over the job's history, and whether the history was complete."""
    tally = Tally()
    run_chain = await history.find_history_runs(client, job_view.id, job_view.run_id)
    try:
        async for event in history.read_history_events(client, job_view.id, run_chain.runs):
            tally.add_event(event)
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        # The server deleted a run meanwhile, which is like one deleted earlier.
        return tally, False
    return tally, run_chain.complete
