"""How a closed job ended, for the terminal and as an exit code."""

from __future__ import annotations

import json
from typing import Any

from cli.jobs.job_lines import Status, usage_line
from cli.jobs.job_view import JobView
from cli.output import FAILED, OK, print_json, print_result
from cli.trials import trial_rendering

MOST_RESULT = 1000
"""Characters of a typed result that are shown."""


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
    spent = usage_line({"usage": result.get("usage") or status.get("usage")})
    if not spent:
        return lines
    if status.get("project"):
        count = result.get("jobs") or len(status.get("jobs") or [])
        return [*lines, f"{count} job{'' if count == 1 else 's'} · {spent}"]
    phases = result.get("phases") or (status.get("phase") or {}).get("number") or 0
    rewinds = result.get("rewinds") or status.get("rewinds") or 0
    lines.append(f"{phases} phases · {rewinds} rewinds · {spent}")
    return lines


def job_result_line(typed: dict[str, Any]) -> str:
    """Render `result output/result.json: {"grams": 3}`, or its size if it is long."""
    content = json.dumps(typed.get("content"), ensure_ascii=False)
    if typed.get("content") is None or len(content) > MOST_RESULT:
        content = f"{typed['bytes']:,} bytes"
    return f"result {typed['path']}: {content}"


def job_branch_lines(branch: dict[str, Any]) -> list[str]:
    """Render the branch with the work on a repository in lines."""
    if not branch:
        return []
    if not branch.get("commit"):
        return ["nothing in the repository was changed"]
    lines = [f"branch {branch['branch']} at {branch['commit'][:12]}"]
    if branch.get("published"):
        lines[0] += f", pushed to {branch['published']}"
    return lines + [f"  {path}" for path in branch.get("files") or []]


def print_job_outcome(job: JobView, *, json: bool) -> int:
    if json:
        print_json(job.status)
    else:
        for line in job_outcome_lines(job.status):
            print_result(line)
    return job_exit_code(job)


def job_exit_code(job: JobView) -> int:
    return OK if job.status_word == "completed" else FAILED
