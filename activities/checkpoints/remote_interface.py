"""What each kind of remote offers to hosts that share no disk."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_FORGOTTEN = "owner/forgotten-"


def forgotten_mark(at: int) -> str:
    """Return the ref that stands for a forgotten job."""
    return f"{_FORGOTTEN}{at}"


def is_forgotten_mark(ref: str) -> bool:
    return ref.startswith(_FORGOTTEN)


@dataclass(frozen=True)
class RemoteCapabilities:
    """In what the kinds of remotes differ."""

    deletes_objects: bool
    """Forgetting an area deletes its objects, and not only the refs that lead to them."""


class Remote(Protocol):
    """A place for checkpoints. An area such as `jobs/guide` has the refs of one job or project.

    All methods raise RemoteUnavailable, or GitNotInstalled if this host has no git program.
    """

    @property
    def capabilities(self) -> RemoteCapabilities: ...

    def push_refs(
        self,
        area: str,
        repository: Path,
        objects: Path | None,
        moved_refs: dict[str, str],
        new_refs: dict[str, str],
    ) -> None:
        """Store commits with everything reachable from them, then the refs.

        Args:
            objects: Folder with objects that the repository's own packs lack.
            moved_refs: Commits by ref name. Each ref is created or moved to its commit.
            new_refs: Commits by ref name. A ref that exists already stays unchanged.
        """

    def list_refs(self, area: str, folder: str) -> list[str]:
        """List the refs of an area below a folder, such as `owner`."""

    def check_access(self) -> None:
        """Raise unless this worker can use the remote: read, write and delete there."""

    def check_promises(self) -> None:
        """Raise RemoteUnfit for a remote in which hosts would overwrite each other's refs."""

    def forget_area(self, area: str, at: int) -> list[str]:
        """Remove all refs of an area and leave a mark that it was forgotten, if there are any.

        Returns:
            The refs that were there.
        """

    def fetch_packs(self, area: str, draft: Path) -> tuple[dict[str, str], list[Path]]:
        """Download objects that a draft lacks; return refs, and packs needing only those before."""
