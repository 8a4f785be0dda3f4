"""Limits of a start's repository: its size, and the folders it may come from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from config.schema.agent import AgentConfig, ConfigError


@dataclass(frozen=True)
class RepositoryBounds:
    files: int
    bytes: int
    """All files together, and the data that git transfers."""
    file_bytes: int
    named: tuple[str, ...] = ()

    @classmethod
    def of_agents(cls, *agents: AgentConfig) -> RepositoryBounds:
        limits = [agent.limits for agent in agents]
        return cls(
            max(each.repository_files for each in limits),
            max(each.repository_bytes for each in limits),
            max(each.file_bytes for each in limits),
            tuple(sorted(set.intersection(*(set(agent.start.folders or []) for agent in agents)))),
        )

    def check_files(self, source: str, count: int) -> None:
        if count > self.files:
            raise ConfigError(
                f"repository {source}: more than {self.files:,} files; limits.repository_files "
                "allows more"
            )

    def check_bytes(self, source: str, size: int, what: str) -> None:
        if size > self.bytes:
            raise ConfigError(
                f"repository {source}: {what} more than {self.bytes:,} bytes; "
                "limits.repository_bytes allows more"
            )

    def check_file(self, source: str, path: str, size: int) -> None:
        if size > self.file_bytes:
            raise ConfigError(
                f"repository {source}: {path} has {size:,} bytes, and a file may have "
                f"{self.file_bytes:,}; limits.file_bytes allows more"
            )


def repository_folder_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size
        except FileNotFoundError:
            continue
    return total
