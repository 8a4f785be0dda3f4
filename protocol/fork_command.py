"""The command that continues a job under a setting that a job under way keeps."""

from __future__ import annotations


def fork_command(setting: str, job: str = "JOB") -> str:
    """Return `starter.py fork JOB --phase N --set 'KEY=VALUE'`, in backquotes.

    `resume --set` takes settings of the model only; all others need a fork.
    """
    # A job's id and a host that a model named are quoted, as people paste the command.
    named = job if job.replace("-", "").replace(".", "").isalnum() else _quote_fork_argument(job)
    return f"`starter.py fork {named} --phase N --set {_quote_fork_argument(setting)}`"


def _quote_fork_argument(text: str) -> str:
    inner = text.replace("'", "'\\''")
    return f"'{inner}'"
