"""How a closed job ended, for the terminal and as an exit code."""

from __future__ import annotations

from cli.jobs.job_lines import Status, job_branch_lines, job_result_line, job_usage_line
from cli.jobs.job_view import JobView
from cli.output import FAILED, OK, print_json, print_result
from cli.trials import trial_rendering
from protocol.short_text import count_noun


def job_outcome_lines(status: Status) -> list[str]:
    """Render the result of a closed job in lines."""
    result = status.get("result") or {}
    lines = [f"{status.get('job_id')} {status.get('status')}"]
    if status.get("trial") and (runs := trial_rendering.read_trial_runs(status)):
        reached = trial_rendering.trial_ending_line(status)
        return [*lines, *([reached] if reached else []), *trial_rendering.trial_table_lines(runs)]
    if status.get("error") not in (None, status.get("status")):
        lines[0] += f": {status['error']}"
    if result.get("summary"):
        lines.append(str(result["summary"]))
    if result.get("result"):
        lines.append(job_result_line(result["result"]))
    if result.get("confidence") is not None:
        lines.append(f"confidence {result['confidence']}")
    for name in ("deliverables", "unresolved", "dropped"):
        if result.get(name):
            lines += [f"{name}:", *(f"  {item}" for item in result[name])]
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


def print_job_outcome(job: JobView, *, json: bool) -> int:
    if json:
        print_json(job.status)
    else:
        for line in job_outcome_lines(job.status):
            print_result(line)
    return job_exit_code(job)


def job_exit_code(job: JobView) -> int:
    return OK if job.status_word == "completed" else FAILED
