"""How large a repository may be, and the words for one that is larger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from config.schema.agent import AgentConfig, ConfigError


@dataclass(frozen=True)
class Bounds:
    """The most that a start takes."""

    files: int
    bytes: int
    """Of all files together, and of what is fetched."""
    file_bytes: int
    """Of one file."""

    @classmethod
    def of_agents(cls, *agents: AgentConfig) -> Bounds:
        """The widest of the agents' limits."""
        limits = [agent.limits for agent in agents]
        return cls(
            max(each.repository_files for each in limits),
            max(each.repository_bytes for each in limits),
            max(each.file_bytes for each in limits),
        )

    def check_files(self, source: str, count: int) -> None:
        """Raises ConfigError for too many files."""
        if count > self.files:
            raise ConfigError(
                f"repository {source}: more than {self.files:,} files; limits.repository_files "
                "allows more"
            )

    def check_bytes(self, source: str, size: int, what: str) -> None:
        """Raises ConfigError for too many bytes."""
        if size > self.bytes:
            raise ConfigError(
                f"repository {source}: {what} more than {self.bytes:,} bytes; "
                "limits.repository_bytes allows more"
            )

    def check_file(self, source: str, path: str, size: int) -> None:
        """Raises ConfigError for a file that no checkpoint takes."""
        if size > self.file_bytes:
            raise ConfigError(
                f"repository {source}: {path} has {size:,} bytes, and a file may have "
                f"{self.file_bytes:,}; limits.file_bytes allows more"
            )


def folder_bytes(folder: Path) -> int:
    """Bytes of the files below a folder, in which others may be at work."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size
        except FileNotFoundError:
            continue
    return total
