"""What can go wrong with files and checkpoints, in one tree.

ValueError
├── PathRefused         the path is not one inside the workspace
└── FilesError          the operation does not fit the files that are there
    └── FileMissing
LookupError
└── CheckpointMissing   a commit, tree or blob is not in the repository
RuntimeError
├── RootError           the workspaces root cannot be used
├── GitNotInstalled               a remote is wanted, and there is no git program
└── RemoteUnavailable          the remote of checkpoints cannot be reached
"""

from protocol.errors import Invalid, LonghaulError, Unavailable


def quote_path(path: str) -> str:
    """A path for a one-line message: quoted, control characters escaped, cut at 120."""
    return repr(path if len(path) <= 120 else f"{path[:80]}…{path[-30:]}")


class PathRefused(Invalid):
    """The path is not one inside the workspace. The message names it and says what to do."""


class FilesError(Invalid):
    """The operation does not fit the files that are there. One line that says what to do."""


class FileMissing(FilesError):
    """There is nothing at `path`."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"There is no file {quote_path(path)}; list the folder to see what is there."
        )
        self.path = path


class CheckpointMissing(LonghaulError, LookupError):
    """A commit, tree or blob is not in the repository; `commit` is the id that was looked for
    (of the object, where that is not a commit; empty when the whole repository is missing)."""

    def __init__(self, commit: str, why: str = "") -> None:
        super().__init__(why or f"The checkpoint object {commit} cannot be found.")
        self.commit = commit


class RootError(Unavailable):
    """The workspaces root is missing or cannot be written. One line that says what to do."""


class GitNotInstalled(Unavailable):
    """A remote is wanted, and this host has no git program. One line that says what to do."""


class RemoteUnavailable(Unavailable):
    """The remote of checkpoints cannot be reached, or refuses. The message is git's, one line."""

    def __init__(self, why: str, stdout: str = "") -> None:
        super().__init__(why)
        self.told = stdout
        """What git printed for programs."""
