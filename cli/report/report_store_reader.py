"""Reads the store for reports: traces, and habits found from them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from activities.checkpoints import Root, RootError
from activities.stores.store_errors import StoreUnavailableError
from activities.stores.stored_traces import read_job_traces
from cli.report.habits import read_habits
from cli.report.report_content import Habit
from cli.report.sanitize import sanitize_line
from config.schema.agent import ConfigError
from engine.root_location import workspaces_root

T = TypeVar("T")


class ReportStoreReader:
    """Reads this environment's store; not retried after a failure, since each try takes time."""

    def __init__(self) -> None:
        self.remarks: list[str] = []
        """A remark on missing data if the store did not answer."""

    def traces(self, job_id: str) -> list[dict[str, Any]]:
        """Return a job's traces; empty if they cannot be read."""
        return self._read_from_store(lambda root: _read_report_traces(root, job_id))

    def habits(self, project: str, agent: str = "", job_id: str = "") -> list[Habit]:
        """Return recurring mistakes; empty if they cannot be read.

        Args:
            project: Project whose jobs are compared; empty for jobs without a project.
            agent: Agent whose jobs are compared; empty for all.
            job_id: The job the report is about, if it is about one.
        """
        return self._read_from_store(lambda root: read_habits(root, project, agent, job_id))

    def _read_from_store(self, work: Callable[[Root], list[T]]) -> list[T]:
        if self.remarks:
            return []
        try:
            return work(Root.open(workspaces_root(), create=False))
        except (StoreUnavailableError, RootError, ConfigError) as error:
            self.remarks.append(
                "Not all traces, and mistakes found from them, could be read: "
                f"{sanitize_line(error)}"
            )
            return []


def _read_report_traces(root: Root, job_id: str) -> list[dict[str, Any]]:
    return [
        {
            "time": f"{datetime.fromtimestamp(row.at, UTC):%Y-%m-%d %H:%M}",
            "type": row.type,
            "source": row.source,
            "guard": row.guard,
            "phase": row.phase,
            "step": row.step,
            "retrieved": row.retrieved,
            "event": {
                "what_happened": row.what_happened,
                "what_was_correct": row.what_was_correct,
                "why": row.why,
            },
        }
        for row in read_job_traces(root, job_id)
    ]
