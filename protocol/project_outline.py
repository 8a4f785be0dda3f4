"""The outline of a project: its units with the jobs that worked on them, and its running jobs."""

from collections.abc import Sequence
from datetime import timedelta

from protocol import outline
from protocol.job_outline import branch_section
from protocol.project_start import FORM_SPECS
from protocol.project_units import Attempt, PersonWait
from protocol.proof import Proof
from protocol.short_text import (
    count_noun,
    indent_list_entry,
    one_line,
    opening_line,
    shorten_to_both_ends,
)
from protocol.status import ProjectJob, ProjectStatus, ProjectUnit

MAX_SAID = 200
MOST_LINES = 5
DISPROVED = "it said that it was done, and proof refused: "


def project_outline(status: ProjectStatus, notices: Sequence[object]) -> outline.Outline:
    result, line = status.result, status.line or status.details
    kind = f"{FORM_SPECS[status.form].unit}s" if status.form else ""
    done = sum(unit.status == "completed" for unit in status.units)
    return outline.Outline(
        id=status.job_id,
        title=one_line(status.title, 80),
        word=status.status,
        ending=f"{status.status}, {line}" if result and line else status.status,
        facts=tuple(filter(None, [status.agent, f"wave {status.wave}" if status.wave else ""])),
        place=line,
        progress=(done, len(status.units)),
        wait=outline.wait_line(status.waiting, status.waiting_for),
        sections=outline.outline_sections(
            [
                _needs_section(status),
                outline.Section(
                    "result", rows=outline.text_rows(result.summary if result and not line else "")
                ),
                outline.listed_section(
                    "deliverables", "Unresolved", result.unresolved if result else []
                ),
                outline.listed_section("deliverables", "Dropped", result.dropped if result else []),
                branch_section(result.branch if result else None),
                outline.scope_section(status.scope, status.items),
                outline.Section(
                    "list", kind if result else line, rows=tuple(map(_unit_row, status.units))
                ),
                _jobs_section(status),
                outline.listed_section("jobs", "Waits", [*map(project_wait_line, status.waits)]),
                _figures_section(status),
                outline.Section(
                    "place",
                    rows=outline.text_rows(
                        outline.origin_line(status.origin), _repository_line(status)
                    ),
                ),
                outline.notices_section(notices),
            ]
        ),
    )


def _needs_section(status: ProjectStatus) -> outline.Section:
    """What needs a person: jobs that wait and blocked units, then the project itself."""
    others = outline.needs_section(status)
    rows = [
        outline.Row(f"needs you: {job.unit} waits ({job.waiting}), see `starter.py show {job.job}`")
        for job in status.running
        # What all wait for is said at length.
        if job.waiting and not (status.waiting and len(status.running) == 1)
    ]
    for unit in status.units:
        if unit.status == "blocked":
            # The result has the reasons among what is unresolved.
            why = "" if status.result else "; ".join(map(opening_line, unit.reasons))
            text = f"needs you: {unit.id} is blocked" + (f": {one_line(why, MAX_SAID)}" * bool(why))
            rows.append(outline.Row(text, below=(unit.unblock,) if unit.unblock else ()))
    return outline.Section("needs", rows=(*rows, *others.rows))


def _unit_row(unit: ProjectUnit) -> outline.Row:
    # The title of a feature is the beginning of its description.
    title = (unit.title,) if unit.checks and unit.title else ()
    text = unit.id if title or not unit.title else f"{unit.id}: {unit.title}"
    return outline.Row(text, outline.mark(unit.status), below=(*title, *project_unit_story(unit)))


def project_unit_story(unit: ProjectUnit) -> list[str]:
    lines = [line for attempt in unit.history for line in _attempt_lines(attempt)]
    for run in unit.evidence:
        end = [line for line in run.end.splitlines() if line.strip()]
        lines.append(f"{'proof' if run.passed else 'failed'}: {project_proof_line(run)}")
        lines += [f"  | {line}" for line in (["…"] if end[MOST_LINES:] else []) + end[-MOST_LINES:]]
    if unit.commit:
        lines.append(f"commit {unit.commit[:12]}")
    return lines


def _attempt_lines(attempt: Attempt) -> list[str]:
    """A job with what it said and, if it was a tester's, verbatim what it found."""
    spent = [count_noun(attempt.model_calls, "model call"), f"{attempt.tokens:,} tokens"]
    if attempt.cost:
        spent.append(f"cost {attempt.cost:.4f}")
    reasons = [f"{DISPROVED}{opening_line(text)}" for text in attempt.disproved]
    reasons += [
        shorten_to_both_ends(text.strip(), 2 * MAX_SAID)
        if attempt.role == "tester"
        # The proofs have the output.
        else one_line(opening_line(text), 2 * MAX_SAID)
        for text in attempt.why
    ]
    return [
        f"{attempt.job}: {attempt.outcome} · {' · '.join(spent)}",
        *([f"  said: {one_line(attempt.said, MAX_SAID)}"] if attempt.said else []),
        *(f"  {line}" for text in reasons for line in f"- {indent_list_entry(text)}".splitlines()),
    ]


def project_proof_line(run: Proof) -> str:
    """`unit: pytest: exit code 0, 28 tests (brew-tester-1, phase 2, step 9, on 1a2b…)`."""
    origin = f"{run.asked_by}, phase {run.phase}, step {run.step}, on {run.commit[:12]}"
    return f"{run.line} ({origin})"


def project_wait_line(wait: PersonWait) -> str:
    said = f" · {one_line(wait.message, MAX_SAID)}" if wait.message else ""
    return f"waited {timedelta(seconds=int(wait.seconds))} ({wait.reason}): {wait.job}{said}"


def _jobs_section(status: ProjectStatus) -> outline.Section:
    """The jobs that no unit has listed: ended ones with what they said, then running ones."""
    listed = {attempt.job for unit in status.units for attempt in unit.history}
    ended = [
        outline.Row(
            f"{job.job}: {job.status}"
            + (f" · {one_line(job.summary, MAX_SAID)}" * bool(job.summary))
        )
        for job in status.jobs
        if job.job not in listed
    ]
    return outline.Section("jobs", "Jobs", rows=(*ended, *map(_running_job_row, status.running)))


def _running_job_row(job: ProjectJob) -> outline.Row:
    state = f"waiting: {job.waiting}" if job.waiting else "at work"
    deadline = f" · deadline {job.deadline}" if job.deadline else ""
    if job.deadline and job.waits_since:
        # Time spent waiting for people counts.
        deadline = f" · since {job.waits_since}, which counts against its deadline {job.deadline}"
    return outline.Row(
        f"{job.job}: {state} · {job.phase or 'first step'}{deadline}",
        below=tuple(f"{DISPROVED}{opening_line(text)}" for text in job.disproved),
    )


def _figures_section(status: ProjectStatus) -> outline.Section:
    result = status.result
    used = outline.usage_line(result.usage if result and result.usage.model_calls else status.usage)
    count = (result.jobs if result else 0) or len(status.jobs) + len(status.running)
    refused = count_noun(status.refusals, "refusal") if status.refusals else ""
    limits = "" if result else outline.limits_line(status.limits)
    jobs = f"{count_noun(count, 'job')} · {used}" if used else ""
    return outline.Section("figures", rows=outline.text_rows(jobs, refused, limits))


def _repository_line(status: ProjectStatus) -> str:
    if not status.repository:
        return ""
    # With a remote each host has a copy, and only the first one's path is known.
    name = status.repository.rpartition("/")[2]
    copies = f"each host that worked on it has .longhaul/projects/{name} in its root"
    host = f" (on the host where it began; {copies})" if status.remote else ""
    return f"git clone {status.repository}{host}"
