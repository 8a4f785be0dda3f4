"""Renders what projects have beyond jobs: their units and their jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from protocol.proof import Proof
from protocol.short_text import count_noun, indent_list_entry, one_line, shorten_to_both_ends

MAX_SAID = 200
"""Characters shown of a job's final statement."""
MOST_LINES = 5
"""Lines shown of the end of a run's output."""
MOST_REASONS = 500
"""Number of reasons shown."""
DISPROVED = "it said that it was done, and proof refused: "
MARKS = {"completed": "☑", "in_progress": "▶", "blocked": "☒", "pending": "☐"}


def project_unit_lines(status: dict[str, Any]) -> list[tuple[str, str]]:
    """Return checkbox and text of each feature, group or stage."""
    lines = []
    for unit in status.get("units") or []:
        text = f"{unit['id']}: {unit['title']}"
        if (why := " ".join(unit.get("reasons") or [])) and unit["status"] != "completed":
            settled = "blocked" if unit["status"] == "blocked" else "sent back"
            text += f" ({settled}: {_fold_unit_reason(why, MOST_REASONS)})"
        lines.append((MARKS[unit["status"]], text))
    return lines


def render_project_units(status: dict[str, Any]) -> list[str]:
    """Render each unit with its jobs, its proofs and its commit."""
    lines = []
    for (box, text), unit in zip(
        project_unit_lines(status), status.get("units") or [], strict=True
    ):
        lines += [f"  {box} {text}", *(f"      {line}" for line in render_project_unit_story(unit))]
    return lines


def render_project_unit_story(unit: dict[str, Any]) -> list[str]:
    """Render the jobs that worked on a unit with failures, the proofs, and the commit."""
    lines = [
        line for attempt in unit.get("history") or [] for line in _render_unit_attempt(attempt)
    ]
    for run in unit.get("evidence") or []:
        end = [line for line in str(run.get("end") or "").splitlines() if line.strip()]
        lines.append(f"{'proof' if run.get('passed') else 'failed'}: {render_project_proof(run)}")
        lines += [f"  | {line}" for line in (["…"] if end[MOST_LINES:] else []) + end[-MOST_LINES:]]
    if unit.get("commit"):
        lines.append(f"commit {unit['commit'][:12]}")
    if unit.get("unblock"):
        lines.append(unit["unblock"])
    return lines


def _render_unit_attempt(attempt: dict[str, Any]) -> list[str]:
    """Render a job and, verbatim, why its work was not accepted."""
    spent = [
        count_noun(attempt.get("model_calls") or 0, "model call"),
        f"{attempt.get('tokens') or 0:,} tokens",
    ]
    if cost := attempt.get("cost"):
        spent.append(f"cost {cost:.4f}")
    heading = f"{attempt['job']}: {attempt['outcome']} · {' · '.join(spent)}"
    reasons = [f"{DISPROVED}{text}" for text in attempt.get("disproved") or []]
    reasons += [
        shorten_to_both_ends(text.strip(), 2 * MAX_SAID) for text in attempt.get("why") or []
    ]
    return [
        heading,
        *(f"  {line}" for text in reasons for line in f"- {indent_list_entry(text)}".splitlines()),
    ]


def _fold_unit_reason(text: str, most: int) -> str:
    """Put text on one line, keeping its end, where the reason usually is."""
    return " ".join(shorten_to_both_ends(" ".join(text.split()), most).split())


def render_project_proof(run: dict[str, Any]) -> str:
    """Render a proof: `unit: pytest: exit code 0, 28 tests (brew-tester-1, phase 2, step 9, on
    1a2b…)`.
    """
    proof_run = Proof.model_validate(run, extra="ignore")
    origin = (
        f"{proof_run.asked_by}, phase {proof_run.phase}, step {proof_run.step}, on "
        f"{proof_run.commit[:12]}"
    )
    return f"{proof_run.line} ({origin})"


def render_project_waits(status: dict[str, Any]) -> list[str]:
    """Render which jobs waited for a person, and how long."""
    return [
        f"waited {timedelta(seconds=int(wait['seconds']))} ({wait['reason']}): {wait['job']}"
        + (f" · {one_line(wait['message'], MAX_SAID)}" if wait.get("message") else "")
        for wait in status.get("waits") or []
    ]


def project_job_lines(status: dict[str, Any]) -> list[str]:
    """Render a project's jobs, one line each: ended ones, then running ones."""
    ended = [
        # Show summaries: a completed project otherwise reports only the number of stages.
        f"  {job['job']}: {job['status']}"
        + (f" · {one_line(job['summary'], MAX_SAID)}" if job.get("summary") else "")
        for job in status.get("jobs") or []
    ]
    work = [line for each in status.get("running") or [] for line in _render_project_job(each)]
    return [*ended, *work]


def _render_project_job(job: dict[str, Any]) -> list[str]:
    """Render a running job, and below it its claims that proofs refuted."""
    state = f"waiting: {job['waiting']}" if job.get("waiting") else "at work"
    return [
        f"  {job['job']}: {state} · {job['phase'] or 'starting'}"
        f"{_render_project_job_deadline(job)}",
        *(f"    {DISPROVED}{text}" for text in job.get("disproved") or []),
    ]


def _render_project_job_deadline(job: dict[str, Any]) -> str:
    """Render a running job's deadline, noting that time spent waiting for people counts."""
    if not job.get("deadline"):
        return ""
    if not job.get("waits_since"):
        return f" · deadline {job['deadline']}"
    return f" · since {job['waits_since']}, which counts against its deadline {job['deadline']}"
