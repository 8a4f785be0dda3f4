"""The workspaces root: the folder with the workspaces and repositories of all jobs."""

import hashlib
import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from activities.checkpoints.checkpoint_errors import RootError
from activities.checkpoints.disk_access import create_file, read_whole

MAX_FOLDER_BYTES = 200


@lru_cache(maxsize=4096)
def job_folder_name(job: str) -> str:
    """Return the file name for a job id: letters, digits and `.-_` unchanged, the rest as `%XX`.

    It has no leading dot, is never `lost+found`, and has at most 200 bytes. A longer id is cut and
    ends in `%h` and its sha1, as does the empty id; no other id's name contains `%h`.
    """
    name = "".join(
        char if char.isalnum() or char in "-_" or (char == "." and index) else _escape_job_id(char)
        for index, char in enumerate(job)
    )
    if name and len(name.encode()) <= MAX_FOLDER_BYTES:
        return name
    digest = hashlib.sha1(job.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name.encode()[:150].decode(errors='ignore')}%h{digest}"


def _escape_job_id(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class Root:
    """An existing workspaces root. `id`: 12 hex digits, the same for all hosts that share it."""

    path: Path
    id: str

    @classmethod
    def open(cls, path: Path, *, create: bool) -> "Root":
        path = path.absolute()
        marker = path / ".longhaul" / "root-id"
        try:
            if create:
                (path / ".longhaul" / "checkpoints").mkdir(parents=True, exist_ok=True)
                if not marker.exists():
                    create_file(marker, f"{secrets.token_hex(6)}\n")
            root_id = marker.read_text()
        except FileNotFoundError:
            raise RootError(
                f"{path} is not a workspaces root; start a worker on it once or set "
                "LONGHAUL_WORKSPACES to the right folder."
            ) from None
        except OSError as error:
            raise RootError(f"The workspaces root {path} cannot be used: {error}.") from None
        if not re.fullmatch(r"[0-9a-f]{12}\n?", root_id):
            raise RootError(f"{marker} is damaged: restore its 12 hex digits from a backup.")
        if create and not (os.access(marker.parent, os.W_OK) and os.access(path, os.W_OK)):
            raise RootError(f"The workspaces root {path} is not writable; change its mode.")
        return cls(path, root_id.strip())

    def check_presence(self) -> None:
        """Raise RootError if the folder no longer is this root.

        After its disk was unmounted, whatever is written would lie below the mount point, where
        nobody finds it once the disk is back.
        """
        try:
            # Several times in every step.
            root_id = read_whole(f"{self.path}/.longhaul/root-id").decode(errors="replace").strip()
        except (FileNotFoundError, NotADirectoryError):
            root_id = ""
        if root_id != self.id:
            actual = f"another root ({root_id})" if root_id else "no workspaces root"
            raise RootError(
                f"{self.path} has {actual} where this worker began with {self.id}: mount its disk "
                "again, or put the folder back"
            )

    def workspace(self, job: str) -> Path:
        return self.path / job_folder_name(job)

    def repository(self, job: str) -> Path:
        return _job_repository_path(self.path, job)

    def lost_found(self, job: str) -> Path:
        """Return the folder for stray files of the workspace."""
        return self.path / "lost+found" / job_folder_name(job)

    @property
    def staged(self) -> Path:
        """Return the folder for files that are handed in before their job starts."""
        return self.path / ".longhaul" / "staged"


@lru_cache(maxsize=4096)
def _job_repository_path(root: Path, job: str) -> Path:
    # Cached: used several times in every step, and slow to build.
    return root / ".longhaul" / "checkpoints" / f"{job_folder_name(job)}.git"


def list_job_repositories(root: Root) -> list[Path]:
    """Return the intact repositories of jobs, the last changed first."""
    folder = root.path / ".longhaul" / "checkpoints"
    changed = {}
    for path in folder.glob("*.git"):
        with suppress(OSError):
            changed[path] = (path / "refs" / "tags").stat().st_mtime
    return sorted(changed, key=lambda path: changed[path], reverse=True)
