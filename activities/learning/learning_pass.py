"""One pass of learning: patterns, proposals, and what becomes of the guards there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from activities.checkpoints import Root
from activities.learning.finished_jobs import finished
from activities.learning.guard_replay import replay
from activities.learning.patterns import Pattern, extract_patterns
from activities.learning.precision import BY_ITSELF, Figures, figures, is_ready, next_stage
from activities.learning.promotion import made_at, move, own_guards, settings_of, step_back
from activities.learning.proposals import propose, propose_stricter
from activities.learning.situations import moments
from activities.learning.stricter import refuses
from activities.stores import traces as rows
from activities.stores.engine import Store
from config.learned_guards import Learned, LearnedGuards
from config.schema.agent import Problem


@dataclass(frozen=True)
class Standing:
    """A guard that was learned, as it stands."""

    learned: Learned
    figures: Figures
    ready: bool

    @property
    def line(self) -> str:
        """For people."""
        told = self.figures.line if self.learned.guard else self.learned.prompt
        if self.learned.stage == "retired":
            told += f"; {self.learned.why}"
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
        self.traces: Sequence[Row[Any]] = Store(root).read(rows.some)
        self._finished = finished(root)
        folders = {row.job: root.repository(row.job).stem for row in self.traces}
        jobs = {job: self._finished.get(folder) for job, folder in folders.items()}
        self._accepted = {name: job.delivered for name, job in jobs.items() if job}

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
        return [*self._moved(), *self._proposed(beat)]

    def _moved(self) -> list[str]:
        done = []
        for now in self.standing():
            learned = now.learned
            if not learned.guard:
                continue
            if line := step_back(self._guards, learned, self.traces, self._accepted):
                done.append(line)
                continue
            moved = next_stage(learned.stage, now.figures, settings_of(learned.agent))
            if moved:
                done.append(move(self._guards, learned, *moved))
        return done

    def _proposed(self, beat: Callable[[], None]) -> list[str]:
        done = []
        for pattern in self.patterns:
            beat()
            settings = settings_of(pattern.agent)
            if len(pattern.traces) < settings.traces or pattern.jobs < settings.jobs:
                continue
            known = {name: self._guards.number(name) for name in self._guards.names()}
            made = self._proposal(pattern)
            if made is None:
                continue
            if made.guard:
                delivered = {name: job.delivered for name, job in self._finished.items()}
                made.replayed = replay(
                    self._root,
                    made.guard,
                    made.agent,
                    self.traces,
                    delivered,
                    beat,
                    {row.job for row in pattern.traces},
                )
            # The replay takes its time: another pass, or a person, may have come first.
            with suppress(FileExistsError):
                self._guards.put_as(made, known.get(made.name, 0) + 1)
                done.append(f"{made.name}: proposed ({made.stage}), {made.why}. {made.evidence[0]}")
        return done

    def _proposal(self, pattern: Pattern) -> Learned | None:
        """What is proposed for a pattern; None if there is an answer to it already."""
        newest = {learned.name: learned for learned in self._guards.newest()}
        begun = [
            learned
            for learned in newest.values()
            if (learned.agent, learned.project) == (pattern.agent, pattern.project)
            and learned.stage in ("experiment", "active")
        ]
        seen = moments(self._root, pattern.traces)
        calls = [moment.now for moment in seen]
        if calls and any(learned.guard and refuses(learned.guard, calls) for learned in begun):
            return None
        own, at = own_guards(pattern.agent), made_at()
        made = propose_stricter(pattern, at, seen, begun, own)
        if made is None or (made.replaces and made.name in newest):
            made = propose(pattern, at, seen)
            return None if _is_answered(pattern, newest.get(made.name)) else made
        if made.name in newest:
            # What acts goes on acting while the stricter version is on trial.
            made.stricter_than = self._guards.number_acting(newest[made.name])
        return made

    def promote(self, name: str) -> str:
        """Make a guard that is ready active; a line that says so. Raises Problem."""
        now = self._named(name)
        if now.learned.guard is None:
            raise Problem(f"{name} is a proposal for a prompt, which a person changes")
        if now.learned.stage != "experiment":
            raise Problem(f"{name} is {now.learned.stage}; only one in experiment is promoted")
        if not now.ready:
            settings = settings_of(now.learned.agent)
            raise Problem(
                f"{name} is not ready: {now.figures.line}; it takes {settings.evaluations} "
                f"evaluations with at most {settings.ready_share:.0%} wrong"
            )
        return move(
            self._guards, now.learned, "active", f"promoted by a person: {now.figures.line}"
        )

    def retire(self, name: str) -> str:
        """Take a guard out of use; a line that says so. Raises Problem."""
        return move(self._guards, self._named(name).learned, "retired", "retired by a person")

    def shown(self, name: str) -> dict[str, Any]:
        """The file that counts, and what went before it. Raises Problem."""
        self._named(name)
        history = [one.data() for one in self._guards.revisions(name)]
        return {"file": self._guards.path(name).read_text().rstrip(), "revisions": history}

    def _named(self, name: str) -> Standing:
        standing = {now.learned.name: now for now in self.standing()}
        if name not in standing:
            known = ", ".join(standing) or "none"
            raise Problem(f"no learned guard is called {name}; those there are: {known}")
        return standing[name]

    def _standing(self, learned: Learned) -> Standing:
        jobs = 0
        if guard := learned.guard:
            begun = (job for job in self._finished.values() if job.at >= learned.since)
            jobs = sum(job.had(guard) for job in begun)
        found = figures(learned, self.traces, self._accepted, jobs)
        on_trial = learned.guard is not None and learned.stage == "experiment"
        return Standing(learned, found, on_trial and is_ready(found, settings_of(learned.agent)))


def _is_answered(pattern: Pattern, known: Learned | None) -> bool:
    """Whether a proposal of that name stands; not if it was of no use and people refuse again."""
    if known is None or known.stage != "retired" or not known.why.startswith(BY_ITSELF):
        return known is not None
    again = [row for row in pattern.traces if row.at > known.at]
    return len(again) < settings_of(pattern.agent).traces
