"""The outline of a project: its units with the jobs that worked on them, and its running jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from protocol.job_outline import branch_section
from protocol.outline import (
    Outline,
    Row,
    Section,
    limits_line,
    listed_section,
    mark,
    needs_section,
    notices_section,
    origin_line,
    outline_sections,
    scope_section,
    text_rows,
    usage_line,
    wait_line,
)
from protocol.project import Attempt, PersonWait
from protocol.proof import Proof
from protocol.short_text import count_noun, indent_list_entry, one_line, shorten_to_both_ends
from protocol.status import ProjectJob, ProjectStatus, ProjectUnit

MAX_SAID = 200
"""Characters shown of a job's final statement."""
MOST_LINES = 5
"""Lines shown of the end of a run's output."""
MOST_REASONS = 500
"""Characters shown of why a unit is not completed."""
DISPROVED = "it said that it was done, and proof refused: "


def project_outline(status: ProjectStatus, notices: Sequence[object]) -> Outline:
    """Return the outline of a project.

    Args:
        notices: Those that people are shown, newest first.
    """
    result, line = status.result, status.line or status.details
    done = sum(unit.status == "completed" for unit in status.units)
    return Outline(
        id=status.job_id,
        title=one_line(status.title, 80),
        word=status.status,
        ending=status.status,
        facts=tuple(filter(None, [status.agent, f"wave {status.wave}" if status.wave else ""])),
        place=line,
        progress=(done, len(status.units)),
        wait=wait_line(status.waiting, status.waiting_for),
        sections=outline_sections(
            [
                needs_section(status),
                Section("result", rows=text_rows(result.summary if result else "")),
                listed_section("deliverables", "Unresolved", result.unresolved if result else []),
                listed_section("deliverables", "Dropped", result.dropped if result else []),
                branch_section(result.branch if result else None),
                scope_section(status.scope, status.items),
                Section("list", line, rows=tuple(map(_unit_row, status.units))),
                _jobs_section(status),
                listed_section("jobs", "Waits", [*map(project_wait_line, status.waits)]),
                _figures_section(status),
                Section(
                    "place", rows=text_rows(origin_line(status.origin), _repository_line(status))
                ),
                notices_section(notices),
            ]
        ),
    )


def _unit_row(unit: ProjectUnit) -> Row:
    """A unit with its jobs, its proofs and its commit."""
    text = f"{unit.id}: {unit.title}"
    if unit.reasons and unit.status != "completed":
        settled = "blocked" if unit.status == "blocked" else "sent back"
        why = shorten_to_both_ends(" ".join(" ".join(unit.reasons).split()), MOST_REASONS)
        text += f" ({settled}: {' '.join(why.split())})"
    return Row(text, mark(unit.status), below=tuple(unit_story(unit)))


def unit_story(unit: ProjectUnit) -> list[str]:
    """The jobs that worked on a unit with their failures, the proofs, and the commit."""
    lines = [line for attempt in unit.history for line in _attempt_lines(attempt)]
    for run in unit.evidence:
        end = [line for line in run.end.splitlines() if line.strip()]
        lines.append(f"{'proof' if run.passed else 'failed'}: {project_proof_line(run)}")
        lines += [f"  | {line}" for line in (["…"] if end[MOST_LINES:] else []) + end[-MOST_LINES:]]
    if unit.commit:
        lines.append(f"commit {unit.commit[:12]}")
    return [*lines, unit.unblock] if unit.unblock else lines


def _attempt_lines(attempt: Attempt) -> list[str]:
    """A job and, verbatim, why its work was not accepted."""
    spent = [count_noun(attempt.model_calls, "model call"), f"{attempt.tokens:,} tokens"]
    if attempt.cost:
        spent.append(f"cost {attempt.cost:.4f}")
    reasons = [f"{DISPROVED}{text}" for text in attempt.disproved]
    reasons += [shorten_to_both_ends(text.strip(), 2 * MAX_SAID) for text in attempt.why]
    return [
        f"{attempt.job}: {attempt.outcome} · {' · '.join(spent)}",
        *(f"  {line}" for text in reasons for line in f"- {indent_list_entry(text)}".splitlines()),
    ]


def project_proof_line(run: Proof) -> str:
    """`unit: pytest: exit code 0, 28 tests (brew-tester-1, phase 2, step 9, on 1a2b…)`."""
    origin = f"{run.asked_by}, phase {run.phase}, step {run.step}, on {run.commit[:12]}"
    return f"{run.line} ({origin})"


def project_wait_line(wait: PersonWait) -> str:
    """Which job waited for a person, and how long."""
    said = f" · {one_line(wait.message, MAX_SAID)}" if wait.message else ""
    return f"waited {timedelta(seconds=int(wait.seconds))} ({wait.reason}): {wait.job}{said}"


def _jobs_section(status: ProjectStatus) -> Section:
    """The jobs, a row each: ended ones with what they said, then running ones."""
    ended = [
        Row(
            f"{job.job}: {job.status}"
            + (f" · {one_line(job.summary, MAX_SAID)}" * bool(job.summary))
        )
        for job in status.jobs
    ]
    return Section("jobs", "Jobs", rows=(*ended, *map(_running_job_row, status.running)))


def _running_job_row(job: ProjectJob) -> Row:
    """A running job, and below it its claims that proofs refuted."""
    state = f"waiting: {job.waiting}" if job.waiting else "at work"
    deadline = f" · deadline {job.deadline}" if job.deadline else ""
    if job.deadline and job.waits_since:
        # Time spent waiting for people counts.
        deadline = f" · since {job.waits_since}, which counts against its deadline {job.deadline}"
    return Row(
        f"{job.job}: {state} · {job.phase or 'starting'}{deadline}",
        below=tuple(f"{DISPROVED}{text}" for text in job.disproved),
    )


def _figures_section(status: ProjectStatus) -> Section:
    result = status.result
    used = usage_line(result.usage if result and result.usage.model_calls else status.usage)
    count = (result.jobs if result else 0) or len(status.jobs) + len(status.running)
    refused = count_noun(status.refusals, "refusal") if status.refusals else ""
    limits = "" if result else limits_line(status.limits)
    jobs = f"{count_noun(count, 'job')} · {used}" if used else ""
    return Section("figures", rows=text_rows(jobs, refused, limits))


def _repository_line(status: ProjectStatus) -> str:
    """How to get the product."""
    if not status.repository:
        return ""
    # With a remote each host has a copy, and only the first one's path is known.
    name = status.repository.rpartition("/")[2]
    copies = f"each host that worked on it has .longhaul/projects/{name} in its root"
    host = f" (on the host where it began; {copies})" if status.remote else ""
    return f"git clone {status.repository}{host}"
