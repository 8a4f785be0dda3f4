"""One pass of learning: patterns, proposals, and what becomes of the guards there are."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from activities.checkpoints import Root
from activities.learning.figures import Figures, figures, is_ready, next_stage
from activities.learning.patterns import Pattern, extract_patterns
from activities.learning.proposing import propose
from activities.learning.replaying import accepted, replay
from activities.stores import traces as rows
from activities.stores.engine import Store
from config.learned import Learned, LearnedGuards
from config.loader import agent_names, load_agent
from config.schema import Learning, Problem


@dataclass(frozen=True)
class Standing:
    """A guard that was learned, as it stands."""

    learned: Learned
    figures: Figures
    ready: bool

    @property
    def line(self) -> str:
        """For people."""
        told = self.figures.told if self.learned.guard else self.learned.prompt
        stage = f"{self.learned.stage}{', ready' if self.ready else ''}"
        return f"{self.learned.name}  {stage}  {told}"


class Lessons:
    """What the jobs of a workspaces root have taught. Reads the store once.

    Raises:
        StoreAway: the store does not answer.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._guards = LearnedGuards(root.path)
        self.traces: Sequence[Row[Any]] = Store(root).run(rows.some)
        folders = accepted(root)
        jobs = {row.job for row in self.traces}
        self._accepted = {job: folders.get(root.repository(job).stem, set()) for job in jobs}
        self._folders = folders

    @property
    def patterns(self) -> list[Pattern]:
        """The most frequent first."""
        return extract_patterns(self.traces)

    def standing(self) -> list[Standing]:
        """The guards there are, with their figures. Raises Problem for a file that is broken."""
        return [self._standing(learned) for learned in self._guards.newest()]

    def learn(self, beat: Callable[[], None] = lambda: None) -> list[str]:
        """Make proposals for patterns that have none, and move guards as their figures say.

        Returns:
            A line for each thing that was done.
        """
        done = []
        for now in self.standing():
            learned = now.learned
            moved = next_stage(learned.stage, now.figures, _settings(learned.agent))
            if learned.guard and moved:
                done.append(self._move(learned, *moved))
        known = {learned.name for learned in self._guards.newest()}
        for pattern in self.patterns:
            beat()
            settings = _settings(pattern.agent)
            if len(pattern.traces) < settings.traces or pattern.jobs < settings.jobs:
                continue
            made = propose(pattern, int(time.time()))
            if made.name in known:
                continue
            if made.guard:
                made.replayed = replay(
                    self._root, made.guard, made.agent, self.traces, self._folders, beat
                )
            known.add(made.name)
            self._guards.put(made)
            done.append(f"{made.name}: proposed ({made.stage}). {made.evidence[0]}")
        return done

    def promote(self, name: str) -> str:
        """Make a guard that is ready active; a line that says so. Raises Problem."""
        now = self._named(name)
        if now.learned.guard is None:
            raise Problem(f"{name} is a proposal for a prompt, which a person changes")
        if now.learned.stage != "experiment":
            raise Problem(f"{name} is {now.learned.stage}; only one in experiment is promoted")
        if not now.ready:
            settings = _settings(now.learned.agent)
            raise Problem(
                f"{name} is not ready: {now.figures.told}; it takes {settings.evaluations} "
                f"evaluations with at most {settings.ready_share:.0%} wrong"
            )
        return self._move(now.learned, "active", f"promoted by a person: {now.figures.told}")

    def retire(self, name: str) -> str:
        """Take a guard out of use; a line that says so. Raises Problem."""
        return self._move(self._named(name).learned, "retired", "retired by a person")

    def shown(self, name: str) -> dict[str, Any]:
        """The file that counts, and what went before it. Raises Problem."""
        self._named(name)
        history = [one.model_dump() for one in self._guards.revisions(name)]
        return {"file": self._guards.path(name).read_text().rstrip(), "revisions": history}

    def _named(self, name: str) -> Standing:
        standing = {now.learned.name: now for now in self.standing()}
        if name not in standing:
            known = ", ".join(standing) or "none"
            raise Problem(f"no learned guard is called {name}; those there are: {known}")
        return standing[name]

    def _standing(self, learned: Learned) -> Standing:
        found = figures(learned, self.traces, self._accepted)
        on_trial = learned.guard is not None and learned.stage == "experiment"
        return Standing(learned, found, on_trial and is_ready(found, _settings(learned.agent)))

    def _move(self, learned: Learned, stage: Any, why: str) -> str:
        update = {"stage": stage, "why": why, "at": int(time.time())}
        self._guards.put(learned.model_copy(update=update))
        return f"{learned.name}: {learned.stage} -> {stage}, {why}"


def _settings(agent: str) -> Learning:
    """The agent's, or the defaults for one that is no longer there."""
    known = agent_names()
    return load_agent(agent if agent in known else "generalist").learning
