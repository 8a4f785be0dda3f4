"""How a closed job ended, for the terminal and as an exit code."""

from __future__ import annotations

from cli.jobs.job_lines import (
    Status,
    contract_rows,
    job_branch_lines,
    job_ending_line,
    job_result_line,
    job_usage_line,
)
from cli.jobs.job_view import JobView
from cli.output import FAILED, OK, print_json, print_result
from cli.trials import trial_rendering
from protocol.contract import not_accepted_line
from protocol.short_text import count_noun, one_line

MOST_NOT_ACCEPTED = 20
MOST_STATEMENT = 100
"""Characters of a statement that is named."""


def job_outcome_lines(status: Status) -> list[str]:
    """Render the result of a closed job in lines."""
    result = status.get("result") or {}
    lines = [f"{status.get('job_id')} {job_ending_line(status)}"]
    if status.get("trial") and (runs := trial_rendering.read_trial_runs(status)):
        reached = trial_rendering.trial_ending_line(status)
        return [*lines, *([reached] if reached else []), *trial_rendering.trial_table_lines(runs)]
    if status.get("error") not in (None, status.get("status")):
        lines[0] += f": {status['error']}"
    if named := not_accepted_line(contract_rows(result)):
        lines.append(named)
    if result.get("summary"):
        lines.append(str(result["summary"]))
    if result.get("result"):
        lines.append(job_result_line(result["result"]))
    if result.get("confidence") is not None:
        lines.append(f"confidence {result['confidence']}")
    for name in ("deliverables", "unresolved", "dropped"):
        if result.get(name):
            lines += [f"{name}:", *(f"  {item}" for item in result[name])]
    lines += _not_accepted_lines(result)
    if claimed := [row for row in contract_rows(result) if row.claim and row.is_accepted]:
        lines.append("claimed only:")
        lines += [f"  {row.id}: {one_line(row.claim, MOST_STATEMENT)}" for row in claimed]
    if result.get("notes"):
        lines.append(str(result["notes"]))
    lines += job_branch_lines(result.get("branch") or {})
    spent = job_usage_line({"usage": result.get("usage") or status.get("usage")})
    if not spent:
        return lines
    if status.get("project"):
        count = result.get("jobs") or len(status.get("jobs") or [])
        return [*lines, f"{count_noun(count, 'job')} · {spent}"]
    phases = result.get("phases") or (status.get("phase") or {}).get("number") or 0
    rewinds = result.get("rewinds") or status.get("rewinds") or 0
    lines.append(f"{count_noun(phases, 'phase')} · {count_noun(rewinds, 'rewind')} · {spent}")
    return lines


def _not_accepted_lines(result: Status) -> list[str]:
    """Return each statement that was done and is not accepted, with what the review found."""
    rows = [row for row in contract_rows(result) if not row.is_accepted and not row.reason]
    if not rows:
        return []
    lines = [
        f"  {row.id} {one_line(row.statement, MOST_STATEMENT)} · {row.word}"
        + (f": {row.finding}" if row.finding else "")
        for row in rows[:MOST_NOT_ACCEPTED]
    ]
    more = len(rows) - MOST_NOT_ACCEPTED
    return ["not accepted:", *lines, *([f"  and {more} more"] if more > 0 else [])]


def print_job_outcome(job: JobView, *, json: bool) -> int:
    if json:
        print_json(job.status)
    else:
        for line in job_outcome_lines(job.status):
            print_result(line)
    return job_exit_code(job)


def job_exit_code(job: JobView) -> int:
    return OK if job.status_word == "completed" else FAILED
