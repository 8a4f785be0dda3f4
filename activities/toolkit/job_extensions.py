"""What a house of tools beside the engine does at the turns of a job.

The engine calls every extension and knows none of them. It takes the list from
`activities.tool_catalogue`, whose import fills it.
"""

from collections.abc import Sequence

from sqlalchemy import Connection

from activities.checkpoints import Root
from activities.job.snapshot import Snapshot
from protocol.endings import GateFacts, Outcome

EXTENSIONS: list["JobExtension"] = []


class JobExtension:
    """Hooks that by default do nothing. Those that return strings return notices for people."""

    def check_environment(self) -> None:
        """Raise ConfigError if a variable of the worker's environment cannot be used."""

    def begin_job(self, root: Root, snapshot: Snapshot) -> list[str]:
        """Prepare the workspace of a new job, before its first conversation."""
        return []

    def begin_fork(self, root: Root, snapshot: Snapshot, parent: str) -> list[str]:
        """Settle what a fork shares with the job that it was forked from."""
        return []

    def replace_jobs(self, root: Root, snapshot: Snapshot, earlier: Sequence[str]) -> list[str]:
        """Settle what the jobs left that this one replaces in its project."""
        return []

    def follow_rewind(self, root: Root, snapshot: Snapshot) -> list[str]:
        """Bring stores up to date with files that a rewind put back."""
        return []

    def add_completion_facts(
        self, snapshot: Snapshot, unresolved: Sequence[str], facts: GateFacts
    ) -> None:
        """Record what in the workspace stands against the completion that the agent asks for."""

    def add_store_facts(self, root: Root, snapshot: Snapshot, facts: GateFacts) -> None:
        """Record what stores still lack of a job that is to complete."""

    def completion_notes(self, snapshot: Snapshot) -> list[str]:
        return []

    def close_job(self, root: Root, snapshot: Snapshot, outcome: Outcome) -> list[str]:
        """Release what the job holds; return what it leaves unresolved."""
        return []

    def forget_job(self, connection: Connection, job: str) -> None:
        """Delete a job's rows from the relational store."""
