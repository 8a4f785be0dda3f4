"""Proofs of a job's claims, as verified by the system. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator

from cli.report.checkpoint_facts import CheckpointFacts
from cli.report.report_content import Proof
from cli.report.sanitize import sanitize_line
from cli.report.tally import Passed, Tally
from protocol.phase import Phase

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
