"""One pass of learning: patterns, proposals, and stage changes of existing guards."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from activities.checkpoints import Root
from activities.learning.agent_settings import load_learning_settings, load_own_guards
from activities.learning.call_moments import find_call_moments
from activities.learning.finished_jobs import finished_jobs
from activities.learning.guard_precision import GuardFigures, measure_guard_precision
from activities.learning.guard_replay import replay_guard
from activities.learning.guard_stages import (
    demote_guard,
    guard_revision_time,
    is_guard_ready,
    move_guard_to_stage,
    next_guard_stage,
)
from activities.learning.proposals import propose_guard, propose_stricter
from activities.learning.stricter_version import is_guard_strict_enough
from activities.learning.trace_patterns import Pattern, extract_patterns
from activities.stores import stored_traces as rows
from activities.stores.relational_store import RelationalStore
from config.learned_guards import LearnedGuards, LearnedRevision
from config.schema.agent import ConfigError


@dataclass(frozen=True)
class LearnedGuardStatus:
    """A learned guard and its current stage."""

    learned: LearnedRevision
    figures: GuardFigures
    ready: bool

    @property
    def line(self) -> str:
        """Return a line for people."""
        text = self.figures.line if self.learned.guard else self.learned.prompt
        if self.learned.stage == "retired":
            text += f"; {self.learned.why}"
        stage = f"{self.learned.stage}{', ready' if self.ready else ''}"
        return f"{self.learned.name}  {stage}  {text}"


class LearningPass:
    """Patterns and guards learned from a workspaces root's jobs. Reads the store once.

    Raises:
        StoreUnavailableError: The store does not answer.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._guards = LearnedGuards(root.path)
        self.traces: Sequence[Row[Any]] = RelationalStore(root).read(rows.list_stored_traces)
        self._finished = finished_jobs(root)
        folders = {row.job: root.repository(row.job).stem for row in self.traces}
        jobs = {job: self._finished.get(folder) for job, folder in folders.items()}
        self._accepted = {name: job.delivered for name, job in jobs.items() if job}

    @property
    def patterns(self) -> list[Pattern]:
        """Return the patterns, the most frequent first."""
        return extract_patterns(self.traces)

    def guard_statuses(self) -> list[LearnedGuardStatus]:
        """Return the existing guards with their figures. Raises ConfigError for a broken file."""
        return [self._guard_status(learned) for learned in self._guards.newest_revisions()]

    def learn(self) -> list[str]:
        """Propose guards for patterns without one, and move guards as their figures require.

        Returns:
            A line for each action.
        """
        return [*self._move_guards(), *self._make_proposals()]

    def _move_guards(self) -> list[str]:
        proposed = []
        for now in self.guard_statuses():
            learned = now.learned
            if not learned.guard:
                continue
            if line := demote_guard(self._guards, learned, self.traces, self._accepted):
                proposed.append(line)
                continue
            moved = next_guard_stage(
                learned.stage, now.figures, load_learning_settings(learned.agent)
            )
            if moved:
                unused = moved[0] == "retired"
                proposed.append(move_guard_to_stage(self._guards, learned, *moved, unused=unused))
        return proposed

    def _make_proposals(self) -> list[str]:
        proposed = []
        for pattern in self.patterns:
            settings = load_learning_settings(pattern.agent)
            if len(pattern.traces) < settings.traces or pattern.jobs < settings.jobs:
                continue
            known = {name: self._guards.newest_number(name) for name in self._guards.names()}
            proposal = self._propose_guard(pattern)
            if proposal is None:
                continue
            if proposal.guard:
                delivered = {name: job.delivered for name, job in self._finished.items()}
                proposal.replayed = replay_guard(
                    self._root,
                    proposal.guard,
                    proposal.agent,
                    self.traces,
                    delivered,
                    {row.job for row in pattern.traces},
                )
            # The replay takes time, and another pass or a person may have proposed it meanwhile.
            with suppress(FileExistsError):
                self._guards.put_as(proposal, known.get(proposal.name, 0) + 1)
                proposed.append(
                    f"{proposal.name}: proposed ({proposal.stage}), {proposal.why}. "
                    f"{proposal.evidence[0]}"
                )
        return proposed

    def _propose_guard(self, pattern: Pattern) -> LearnedRevision | None:
        """Return the proposal for a pattern; None if there is a guard for it already."""
        newest = {learned.name: learned for learned in self._guards.newest_revisions()}
        in_use = [
            learned
            for learned in newest.values()
            if (learned.agent, learned.project) == (pattern.agent, pattern.project)
            and learned.stage in ("experiment", "active")
        ]
        moments = find_call_moments(self._root, pattern.traces)
        calls = [moment.situation for moment in moments]
        if calls and any(
            learned.guard and is_guard_strict_enough(learned.guard, calls) for learned in in_use
        ):
            return None
        agent_guards, timestamp = load_own_guards(pattern.agent), guard_revision_time()
        proposal = propose_stricter(pattern, timestamp, moments, in_use, agent_guards)
        if proposal is None or (proposal.replaces and proposal.name in newest):
            proposal = propose_guard(pattern, timestamp, moments)
            return (
                None
                if _is_answered_by_earlier_pass(pattern, newest.get(proposal.name))
                else proposal
            )
        if proposal.name in newest:
            # The acting version continues while the stricter one is on trial.
            proposal.stricter_than = self._guards.number_acting(newest[proposal.name])
        return proposal

    def promote_guard(self, name: str) -> str:
        """Make a ready guard active; return a line about it. Raises ConfigError."""
        now = self._find_status(name)
        if now.learned.guard is None:
            raise ConfigError(f"{name} is a proposal for a prompt, which a person changes")
        if now.learned.stage != "experiment":
            raise ConfigError(f"{name} is {now.learned.stage}; only one in experiment is promoted")
        if not now.ready:
            settings = load_learning_settings(now.learned.agent)
            raise ConfigError(
                f"{name} is not ready: {now.figures.line}; it takes {settings.evaluations} "
                f"evaluations with at most {settings.ready_share:.0%} wrong"
            )
        return move_guard_to_stage(
            self._guards, now.learned, "active", f"promoted by a person: {now.figures.line}"
        )

    def retire_guard(self, name: str) -> str:
        """Take a guard out of use; return a line about it. Raises ConfigError."""
        return move_guard_to_stage(
            self._guards, self._find_status(name).learned, "retired", "retired by a person"
        )

    def show_guard(self, name: str) -> dict[str, Any]:
        """Return the current file and its earlier revisions. Raises ConfigError."""
        self._find_status(name)
        history = [revision.data() for revision in self._guards.revisions(name)]
        return {"file": self._guards.newest_path(name).read_text().rstrip(), "revisions": history}

    def _find_status(self, name: str) -> LearnedGuardStatus:
        standing = {now.learned.name: now for now in self.guard_statuses()}
        if name not in standing:
            known = ", ".join(standing) or "none"
            raise ConfigError(f"no learned guard is called {name}; those there are: {known}")
        return standing[name]

    def _guard_status(self, learned: LearnedRevision) -> LearnedGuardStatus:
        jobs = 0
        if guard := learned.guard:
            jobs_since = (
                job for job in self._finished.values() if job.completed_at >= learned.since
            )
            jobs = sum(job.had_guard(guard) for job in jobs_since)
        figures = measure_guard_precision(learned, self.traces, self._accepted, jobs)
        on_trial = learned.guard is not None and learned.stage == "experiment"
        return LearnedGuardStatus(
            learned,
            figures,
            on_trial and is_guard_ready(figures, load_learning_settings(learned.agent)),
        )


def _is_answered_by_earlier_pass(pattern: Pattern, known: LearnedRevision | None) -> bool:
    """Whether a proposal with that name counts as the answer. A useless one does not, if people
    refuse such calls again.
    """
    if known is None or known.stage != "retired" or not known.unused:
        return known is not None
    again = [row for row in pattern.traces if row.at > known.at]
    return len(again) < load_learning_settings(pattern.agent).traces
