"""The command that continues a job under a setting that a job under way keeps."""

from __future__ import annotations

from protocol.short_text import shell_quoted


def fork_command(setting: str, job: str = "JOB") -> str:
    """Return `starter.py fork JOB --phase N --set 'KEY=VALUE'`, in backquotes.

    `resume --set` takes settings of the model only; all others need a fork.
    """
    # A job's id and a host that a model named are quoted, as people paste the command.
    return f"`starter.py fork {shell_quoted(job)} --phase N --set {shell_quoted(setting)}`"
