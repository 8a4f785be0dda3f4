"""The owner of a repository: a mark that a job or a project writes into its repository."""

from pathlib import Path

from activities.checkpoints.disk_access import create_file
from protocol.data_model import Data

OWNER_FILE = "job.json"


class OwnerMark(Data):
    """What is known of a repository without opening it."""

    chain: str
    """First run id of the workflow."""
    job: str
    namespace: str = ""
    """Empty if the job came from another host."""
    project: str = ""
    """The project that the job works for."""
    keep_days: float | None = None
    remote: str = ""

    def may_be_in(self, namespace: str) -> bool:
        return self.namespace in ("", namespace)


def record_owner(repository: Path, mark: OwnerMark) -> OwnerMark | None:
    """Write the mark unless there is one. Return the mark that counts, None if it is unreadable."""
    create_file(repository / OWNER_FILE, mark.model_dump_json())
    return read_owner(repository)


def read_owner(repository: Path) -> OwnerMark | None:
    try:
        return OwnerMark.model_validate_json((repository / OWNER_FILE).read_bytes())
    except (OSError, ValueError):
        return None
