"""Guards that were learned: files in the workspaces root, a folder each, every revision kept.

    <root>/.longhaul/guards/<name>/0001.yaml, 0002.yaml …     the newest counts

A job reads them when it starts and keeps what it read. They lie beside the jobs and not in the
store, so that a start needs no store, and people can read and edit them.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from config.schema.guards import Guard, GuardStage
from config.yaml_files import read_model
from protocol.state import Data


class ReplayCounts(Data):
    """What a guard would have done in jobs that were there before it."""

    hits: int = 0
    wrong: int = 0
    own: int = 0
    """Right refusals in the jobs that it was made from, which are none of the hits: they say that
    it fits its own examples, and nothing of other work."""


class LearnedRevision(Data):
    """A revision of a guard that was learned, or of a proposal for a person."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")
    stage: GuardStage
    at: int
    """When this revision was made, epoch seconds."""
    since: int
    """Since when the guard is as it is now: what is counted begins there."""
    why: str
    """What made this revision."""
    agent: str
    """Whose jobs it is for."""
    project: str = ""
    """Whose jobs it is for, if they are a project's."""
    evidence: list[str] = Field(default_factory=list)
    """What it is made from: figures, and traces by number."""
    replayed: ReplayCounts = Field(default_factory=ReplayCounts)
    guard: Guard | None = None
    """None: nothing but a change to a prompt helps, which a person makes."""
    prompt: str = ""
    """What to change in a prompt."""
    stricter_than: int = 0
    """The revision of this guard that acts while this one is on trial; 0: none."""
    replaces: str = ""
    """The agent's own guard of which this one is a stricter version, once it is active."""

    def data(self) -> dict[str, Any]:
        """For programs: the stage is the revision's, and what the guard itself says of it none."""
        return self.model_dump(exclude={"guard": {"stage"}})


class LearnedGuards:
    """The guards that a workspaces root has learned."""

    def __init__(self, root: Path) -> None:
        self._folder = root / ".longhaul" / "guards"

    def newest_revisions(self) -> list[LearnedRevision]:
        """The newest revision of each, by name. Raises ConfigError."""
        by_name = map(self.revisions, self.names())
        return [revisions[-1] for revisions in by_name if revisions]

    def names(self) -> list[str]:
        """Of all that were learned, sorted."""
        if not self._folder.is_dir():
            return []
        return sorted(path.name for path in self._folder.iterdir())

    def revisions(self, name: str) -> list[LearnedRevision]:
        """All of a guard that are there, oldest first. Raises ConfigError."""
        return [read_model(path, LearnedRevision) for path in self._revision_files(name)]

    def newest_path(self, name: str) -> Path:
        """The file that counts."""
        return self._revision_files(name)[-1]

    def _revision_files(self, name: str) -> list[Path]:
        """Revisions, oldest first; people may have taken some away."""
        return sorted((self._folder / name).glob("[0-9][0-9][0-9][0-9].yaml"))

    def put_revision(self, learned: LearnedRevision) -> Path:
        """Write a further revision, whole or not at all; nothing is written over."""
        while True:
            with suppress(FileExistsError):
                return self.put_as(learned, self.newest_number(learned.name) + 1)

    def put_as(self, learned: LearnedRevision, number: int) -> Path:
        """Write the revision of that number. Raises FileExistsError: somebody else has."""
        folder = self._folder / learned.name
        folder.mkdir(parents=True, exist_ok=True)
        content = yaml.safe_dump(
            learned.model_dump(mode="json", exclude_defaults=True),
            sort_keys=False, allow_unicode=True, width=96,
        )  # fmt: skip
        draft = folder / f".{secrets.token_hex(6)}"
        draft.write_text(content, encoding="utf-8")
        path = _revision_path(folder, number)
        try:
            os.link(draft, path)
        finally:
            draft.unlink()
        return path

    def newest_number(self, name: str) -> int:
        """Of the newest revision of a guard; 0: there is none."""
        files = self._revision_files(name)
        return _revision_number(files[-1]) if files else 0

    def rules_for(self, agent: str, project: str, agent_guards: Sequence[Guard]) -> list[Guard]:
        """All that a job of the agent starts with: its own, and those active or on trial.

        Args:
            agent: The agent's name.
            project: The project that the job works for, or nothing.
            agent_guards: The agent's own guards; a learned one of the same name does not count.
        """
        own_names = {guard.name for guard in agent_guards}
        learned: list[Guard] = []
        replaced: set[str] = set()
        for revision in self.newest_revisions():
            if (revision.agent, revision.project) != (agent, project) or revision.guard is None:
                continue
            if revision.guard.name in own_names or revision.stage not in ("experiment", "active"):
                continue
            acting = self.acting_revision(revision)
            if acting and acting.guard:
                learned.append(acting.guard.model_copy(update={"stage": "active"}))
            if revision.stage == "experiment":
                learned.append(revision.guard.model_copy(update={"stage": revision.stage}))
            elif revision.replaces:
                replaced.add(revision.replaces)
        return [*(guard for guard in agent_guards if guard.name not in replaced), *learned]

    def acting_revision(self, newest: LearnedRevision) -> LearnedRevision | None:
        """The revision of a guard that acts: the newest, or the one that it is to replace.

        Raises:
            ConfigError: its file is missing or broken.
        """
        if newest.stage == "active":
            return newest
        number = self.number_acting(newest)
        return (
            read_model(_revision_path(self._folder / newest.name, number), LearnedRevision)
            if number
            else None
        )

    def number_acting(self, newest: LearnedRevision) -> int:
        """The number of that revision; 0: none acts."""
        if newest.stage == "active":
            return _revision_number(self.newest_path(newest.name))
        return newest.stricter_than if newest.stage == "experiment" else 0


def _revision_path(folder: Path, number: int) -> Path:
    return folder / f"{number:04d}.yaml"


def _revision_number(path: Path) -> int:
    return int(path.stem)
