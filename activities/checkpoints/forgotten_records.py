"""Records of forgotten jobs: all that remains of them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from activities.checkpoints.checkpoint_errors import CheckpointMissing
from activities.checkpoints.disk_access import replace_file
from activities.checkpoints.workspaces_root import Root, job_folder_name
from protocol.data_model import Data


class ForgottenJob(Data):
    job: str
    timestamp: int
    """When forgetting was requested, epoch seconds."""
    project: str = ""
    done: bool = False
    """Whether everything here is removed; until then, the next caller continues the removal."""
    remote: str = ""
    """The remote that may still have checkpoints of it; the next caller removes them there."""

    @property
    def message(self) -> str:
        day = f"{datetime.fromtimestamp(self.timestamp, UTC):%Y-%m-%d}"
        return f"job {self.job} was forgotten on {day}: its workspace and checkpoints are no more"


def find_forgotten_record(root: Root, job: str) -> ForgottenJob | None:
    return _read_forgotten_record(_forgotten_record_path(root.path, job))


def refuse_forgotten_job(root: Path, job: str) -> None:
    """Raise CheckpointMissing if the job was forgotten: nothing brings it back to this root."""
    if record := _read_forgotten_record(_forgotten_record_path(root, job)):
        raise CheckpointMissing("", f"The {record.message}.")


def list_forgotten_records(root: Root) -> Iterator[ForgottenJob]:
    for path in _forgotten_folder(root.path).glob("*.json"):
        if record := _read_forgotten_record(path):
            yield record


def write_forgotten_record(root: Root, record: ForgottenJob) -> None:
    """Write a record atomically; it is fsynced when this returns."""
    replace_file(_forgotten_record_path(root.path, record.job), record.model_dump_json())


def _forgotten_folder(root: Path) -> Path:
    return root / ".longhaul" / "forgotten"


def _forgotten_record_path(root: Path, job: str) -> Path:
    return _forgotten_folder(root) / f"{job_folder_name(job)}.json"


def _read_forgotten_record(path: Path) -> ForgottenJob | None:
    try:
        return ForgottenJob.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None
