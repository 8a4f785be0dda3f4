"""Learned guards: files in the workspaces root, one folder each, with every revision.

    <root>/.longhaul/guards/<name>/0001.yaml, 0002.yaml …     the newest counts

A job reads them at its start and pins them. They are files rather than records in the store, so
that a start needs no store, and people can read and edit them.
"""

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from config.schema.guards import Guard, GuardStage
from config.yaml_files import read_yaml_model
from protocol.data_model import Data


class ReplayCounts(Data):
    """What a guard would have done in earlier jobs."""

    hits: int = 0
    wrong: int = 0
    own: int = 0
    """Correct refusals in the jobs that it was derived from. They are not hits, because they only
    show that it fits its own examples."""


class LearnedRevision(Data):
    """A revision of a learned guard, or of a proposal for a person."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")
    stage: GuardStage
    at: int
    """Time of this revision, epoch seconds."""
    since: int
    """Time of the last change to the guard itself, epoch seconds; counts begin there."""
    why: str
    agent: str
    """The agent whose jobs it applies to."""
    project: str = ""
    """The project whose jobs it applies to; empty for jobs without a project."""
    evidence: list[str] = Field(default_factory=list)
    """Its evidence: in words."""
    traces: list[int] = Field(default_factory=list)
    """Numbers of traces that it comes from; the first few."""
    unused: bool = False
    """Whether it was retired because it never spoke."""
    replayed: ReplayCounts = Field(default_factory=ReplayCounts)
    guard: Guard | None = None
    """The guard; None if only a person's change to a prompt can help."""
    prompt: str = ""
    """The proposed change to a prompt."""
    stricter_than: int = 0
    """The revision that acts while this one is on trial; 0 for none."""
    replaces: str = ""
    """The agent's own guard that this stricter one replaces once it is active."""

    def data(self) -> dict[str, Any]:
        """Machine-readable form, without the guard's own stage: the revision's stage counts."""
        return self.model_dump(exclude={"guard": {"stage"}})


class LearnedGuards:
    """The learned guards of a workspaces root."""

    def __init__(self, root: Path) -> None:
        self._folder = root / ".longhaul" / "guards"

    def newest_revisions(self) -> list[LearnedRevision]:
        """The newest revision of each guard, sorted by name. Raises ConfigError."""
        by_name = map(self.revisions, self.names())
        return [revisions[-1] for revisions in by_name if revisions]

    def names(self) -> list[str]:
        """Sorted names of all learned guards."""
        if not self._folder.is_dir():
            return []
        return sorted(path.name for path in self._folder.iterdir())

    def revisions(self, name: str) -> list[LearnedRevision]:
        """All existing revisions of a guard, oldest first. Raises ConfigError."""
        return [read_yaml_model(path, LearnedRevision) for path in self._revision_files(name)]

    def newest_path(self, name: str) -> Path:
        """The file of the newest revision."""
        return self._revision_files(name)[-1]

    def _revision_files(self, name: str) -> list[Path]:
        """Files of the revisions, oldest first; people may have deleted some."""
        return sorted((self._folder / name).glob("[0-9][0-9][0-9][0-9].yaml"))

    def put_revision(self, learned: LearnedRevision) -> Path:
        """Write the next revision atomically, without overwriting any."""
        while True:
            with suppress(FileExistsError):
                return self.put_as(learned, self.newest_number(learned.name) + 1)

    def put_as(self, learned: LearnedRevision, number: int) -> Path:
        """Write the revision with this number. Raises FileExistsError if it exists."""
        folder = self._folder / learned.name
        folder.mkdir(parents=True, exist_ok=True)
        content = yaml.safe_dump(
            learned.model_dump(mode="json", exclude_defaults=True),
            sort_keys=False, allow_unicode=True, width=96,
        )  # fmt: skip
        draft = folder / f".{secrets.token_hex(6)}"
        draft.write_text(content, encoding="utf-8")
        path = _guard_revision_path(folder, number)
        try:
            os.link(draft, path)
        finally:
            draft.unlink()
        return path

    def newest_number(self, name: str) -> int:
        """Number of a guard's newest revision; 0 without one."""
        files = self._revision_files(name)
        return _revision_number_in_path(files[-1]) if files else 0

    def rules_for(self, agent: str, project: str, agent_guards: Sequence[Guard]) -> list[Guard]:
        """The guards of a new job: the agent's own, and learned ones that are active or on trial.

        Args:
            project: The project that the job works for; empty for none.
            agent_guards: The agent's own guards; a learned one of the same name is ignored.
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
        """The acting revision: the newest, or the one that the newest is to replace; None if none.

        Raises ConfigError: the revision's file is missing or invalid.
        """
        if newest.stage == "active":
            return newest
        number = self.number_acting(newest)
        return (
            read_yaml_model(
                _guard_revision_path(self._folder / newest.name, number), LearnedRevision
            )
            if number
            else None
        )

    def number_acting(self, newest: LearnedRevision) -> int:
        """Number of the acting revision; 0 when none acts."""
        if newest.stage == "active":
            return _revision_number_in_path(self.newest_path(newest.name))
        return newest.stricter_than if newest.stage == "experiment" else 0


def _guard_revision_path(folder: Path, number: int) -> Path:
    return folder / f"{number:04d}.yaml"


def _revision_number_in_path(path: Path) -> int:
    return int(path.stem)
