"""Errors of files and checkpoints.

Invalid
├── PathRefused         the path is not inside the workspace, or cannot be stored
└── FilesError          the operation does not fit the present files
    └── FileMissing
Refusal
└── NewerCheckpoint     a later version wrote it
LonghaulError, LookupError
└── CheckpointMissing   a commit, tree or blob is not in the repository
Unavailable
├── RootError           the workspaces root cannot be used
├── GitNotInstalled     a remote is configured, but the git program is missing
└── RemoteUnavailable   the checkpoint remote cannot be reached
    └── RemoteUnfit     it can never hold checkpoints safely
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protocol.errors import Invalid, LonghaulError, Refusal, Unavailable


def quote_path_in_error(path: str) -> str:
    """Quote a path for a one-line message: control characters escaped, shortened above 120."""
    return repr(path if len(path) <= 120 else f"{path[:80]}…{path[-30:]}")


class PathRefused(Invalid):
    """The path is not inside the workspace, or what is there can be in no checkpoint."""


class FilesError(Invalid):
    """The operation does not fit the present files. The one-line message says what to do."""


class FileMissing(FilesError):
    """`path` does not exist, or is a link to what does not exist."""

    def __init__(self, path: str, target: str | None = None) -> None:
        super().__init__(
            f"There is no file {quote_path_in_error(path)}; list the folder to see what is there."
            if target is None
            else f"{quote_path_in_error(path)} is a link to {quote_path_in_error(target)}, "
            "which is not there."
        )
        self.path = path


class CheckpointMissing(LonghaulError, LookupError):
    """An object is not here; `commit`: its hex id, empty if the repository is missing."""

    def __init__(self, commit: str, why: str = "") -> None:
        super().__init__(why or f"The checkpoint object {commit} cannot be found.")
        self.commit = commit


class NewerCheckpoint(Refusal):
    """A later version wrote the checkpoint, with what this one does not know."""


class RootError(Unavailable):
    """The workspaces root is missing or not writable. The one-line message says what to do."""


class GitNotInstalled(Unavailable):
    """A remote needs the git program, which is missing. The one-line message says what to do."""


class RemoteUnavailable(Unavailable):
    """The checkpoint remote is unreachable or refuses. The message is git's, on one line."""

    def __init__(self, why: str, stdout: str = "") -> None:
        super().__init__(why)
        self.output = stdout


class RemoteUnfit(RemoteUnavailable):
    """The remote can never hold checkpoints safely. The one-line message says what to do."""


@contextmanager
def path_in_errors(path: Path) -> Iterator[None]:
    """Add the path to errors of an opened file, so that a bad disk can be located."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
