"""A series of jobs, and people's rules that hooks enforce."""

import stat
from pathlib import Path
from typing import Any

from tests.workflows.serving import Jobs
from tests.workflows.short import job


def kept_by(path: Path, matcher: str, passes: str, message: str) -> dict[str, Any]:
    """Return the setting for a job that a script watches over.

    Args:
        path: Where the script is written.
        matcher: The tools it is asked about.
        passes: A line of shell that exits with 0 where nothing is to be said.
        message: What is said else.
    """
    path.write_text(f'#!/bin/sh\n{passes}\necho "{message}" >&2\nexit 2\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"hooks": {"PreToolUse": [{"matcher": matcher, "command": str(path)}]}}


async def done(jobs: Jobs, **details: Any) -> str:
    """Complete a job; return its id."""
    handle = await jobs.start(job(**details))
    assert (await jobs.result(handle))["status"] == "completed"
    return handle.id
