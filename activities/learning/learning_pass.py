"""One pass of learning: patterns, proposals, and stage changes of existing guards."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from activities.checkpoints import CheckpointMissing, Checkpoints, Root
from activities.checkpoints.workspaces_root import list_job_repositories
from activities.guards.matching import GuardSituation, would_match_guard
from activities.job.commit_messages import adds_reply
from activities.job.conversation_calls import count_newest_results
from activities.job.snapshot import Snapshot
from activities.learning.finished_jobs import (
    UNREADABLE,
    calls_in_reply,
    find_call_moments,
    finished_jobs,
)
from activities.learning.guard_precision import (
    GuardFigures,
    approved_calls,
    measure_guard_precision,
    was_refusal_wrong,
)
from activities.learning.guard_stages import (
    agent_or_generalist,
    demote_guard,
    guard_revision_time,
    is_guard_ready,
    move_guard_to_stage,
    next_guard_stage,
)
from activities.learning.proposals import is_guard_strict_enough, propose_guard, propose_stricter
from activities.learning.trace_patterns import Pattern, extract_patterns
from activities.stores import stored_traces as rows
from activities.stores.relational_store import RelationalStore
from config.learned_guards import LearnedGuards, LearnedRevision, ReplayCounts
from config.schema.agent import ConfigError
from config.schema.guards import Guard
from protocol.short_text import one_line

MAX_JOBS = 50
MAX_CHECKPOINTS = 3000
"""Most checkpoints of each job, the newest first."""


def replay_guard(
    root: Root,
    guard: Guard,
    agent: str,
    rows: Sequence[Row[Any]],
    results: Mapping[str, frozenset[str]],
    made_from: Collection[str] = (),
) -> ReplayCounts:
    sources = {root.repository(job).stem for job in made_from}
    folders = {row.job: root.repository(row.job).stem for row in rows}
    approved = {(folders[job], step, tool, path) for job, step, tool, path in approved_calls(rows)}
    replayed = ReplayCounts()
    for path in list_job_repositories(root)[:MAX_JOBS]:
        with suppress(*UNREADABLE):
            store = Checkpoints(path)
            for reply, later in _guard_replay_checkpoints(store, agent):
                for now in _call_situations(guard, store, reply, later):
                    if not would_match_guard(guard, now):
                        continue
                    step, named = reply.state.step, str(now.arguments.get("path", ""))
                    wrong = was_refusal_wrong(path.stem, step, now.tool, named, approved, results)
                    if path.stem in sources and not wrong:
                        replayed.own += 1
                        continue
                    replayed.hits += 1
                    replayed.wrong += wrong
    return replayed


def _guard_replay_checkpoints(
    store: Checkpoints, agent: str
) -> Iterator[tuple[Snapshot, list[str]]]:
    """Return the checkpoints at which the agent had just made calls, newest first.

    With each come the ids of the checkpoints after it, up to the next reply, oldest first.
    """
    tags = store.tags()
    newest = tags.get("completed") or tags.get("cancelled")
    newest = newest or next(
        (tags[name] for name in reversed(tags) if name.startswith("phase/")), ""
    )
    if not newest:
        return
    later: list[str] = []
    for entry in store.log(newest, MAX_CHECKPOINTS):
        if not adds_reply(entry.message):
            later.append(entry.id)
            continue
        try:
            snapshot = Snapshot.load(store, entry.id)
        except CheckpointMissing:
            return
        if snapshot.config.name != agent:
            return
        yield snapshot, later[::-1]
        later.clear()


def _call_situations(
    guard: Guard, store: Checkpoints, reply: Snapshot, later: Sequence[str]
) -> Iterator[GuardSituation]:
    """Return the situations of a reply's calls; none for a reply of text alone."""
    changes = guard.match.changes is not None
    try:
        calls = list(calls_in_reply(reply))
    except LookupError:
        return
    standing = {0: reply}
    for commit in later if changes or len(calls) > 1 else ():
        try:
            snapshot = Snapshot.load(store, commit)
        except CheckpointMissing:
            return
        if snapshot.state.phase.number != reply.state.phase.number:
            break
        standing.setdefault(count_newest_results(snapshot.conversation), snapshot)
    for place, (tool, arguments) in enumerate(calls):
        if before := standing.get(place):
            after = standing.get(place + 1) if changes else None
            files = after.files if after else None
            yield GuardSituation.from_snapshot(before, guard.point, tool, arguments, "", files)


@dataclass(frozen=True)
class LearnedGuardStatus:
    learned: LearnedRevision
    figures: GuardFigures
    ready: bool

    @property
    def line(self) -> str:
        text = self.figures.line if self.learned.guard else one_line(self.learned.prompt, 160)
        if self.learned.stage == "retired":
            text += f"; {self.learned.why}"
        stage = f"{self.learned.stage}{', ready' if self.ready else ''}"
        return f"{self.learned.name}  {stage}  {text}"


class LearningPass:
    """Patterns and guards learned from a workspaces root's jobs. Reads the store once."""

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
        return extract_patterns(self.traces)

    def guard_statuses(self) -> list[LearnedGuardStatus]:
        return [self._guard_status(learned) for learned in self._guards.newest_revisions()]

    def learn(self) -> list[str]:
        """Propose guards for patterns, move guards as their figures require; a line for each."""
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
                learned.stage, now.figures, agent_or_generalist(learned.agent).learning
            )
            if moved:
                unused = moved[0] == "retired"
                proposed.append(move_guard_to_stage(self._guards, learned, *moved, unused=unused))
        return proposed

    def _make_proposals(self) -> list[str]:
        proposed = []
        for pattern in self.patterns:
            settings = agent_or_generalist(pattern.agent).learning
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
        agent_guards, timestamp = agent_or_generalist(pattern.agent).rules, guard_revision_time()
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
        now = self._find_status(name)
        if now.learned.guard is None:
            raise ConfigError(f"{name} is a proposal for a prompt, which a person changes")
        if now.learned.stage != "experiment":
            raise ConfigError(f"{name} is {now.learned.stage}; only one in experiment is promoted")
        if not now.ready:
            settings = agent_or_generalist(now.learned.agent).learning
            raise ConfigError(
                f"{name} is not ready: {now.figures.line}; it takes {settings.evaluations} "
                f"evaluations with at most {settings.ready_share:.0%} wrong"
            )
        return move_guard_to_stage(
            self._guards, now.learned, "active", f"promoted by a person: {now.figures.line}"
        )

    def retire_guard(self, name: str) -> str:
        return move_guard_to_stage(
            self._guards, self._find_status(name).learned, "retired", "retired by a person"
        )

    def show_guard(self, name: str) -> dict[str, Any]:
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
            on_trial and is_guard_ready(figures, agent_or_generalist(learned.agent).learning),
        )


def _is_answered_by_earlier_pass(pattern: Pattern, known: LearnedRevision | None) -> bool:
    """Whether a proposal with that name counts as the answer. A useless one does not, if people
    refuse such calls again.
    """
    if known is None or known.stage != "retired" or not known.unused:
        return known is not None
    again = [row for row in pattern.traces if row.at > known.at]
    return len(again) < agent_or_generalist(pattern.agent).learning.traces
