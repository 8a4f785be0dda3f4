"""What is kept of a job that was forgotten: that it was."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from activities.checkpoints import Root, folder_name
from activities.checkpoints.locks import sync
from protocol.state import Data


class Record(Data):
    """A forgotten job."""

    job: str
    at: int
    """When it was asked for, epoch seconds."""
    project: str = ""
    done: bool = False
    """Whether all of it is gone; until then whoever comes by goes on."""

    @property
    def line(self) -> str:
        """For people."""
        day = f"{datetime.fromtimestamp(self.at, UTC):%Y-%m-%d}"
        return f"job {self.job} was forgotten on {day}: its workspace and checkpoints are no more"


def forgotten(root: Root, job: str) -> Record | None:
    """The record of a job; None while it has not been forgotten."""
    return _read(_path(root, job))


def every(root: Root) -> Iterator[Record]:
    """All forgotten jobs of a root, in no order."""
    for path in _folder(root).glob("*.json"):
        if record := _read(path):
            yield record


def keep(root: Root, record: Record) -> None:
    """Write a record, on the disk when this returns."""
    path = _path(root, record.job)
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(f".new-{secrets.token_hex(6)}")
    draft.write_text(record.model_dump_json())
    sync(draft)
    draft.rename(path)
    sync(path.parent)


def _folder(root: Root) -> Path:
    return root.path / ".longhaul" / "forgotten"


def _path(root: Root, job: str) -> Path:
    return _folder(root) / f"{folder_name(job)}.json"


def _read(path: Path) -> Record | None:
    try:
        return Record.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None
