"""A job's work looked into before it counts: the `take_work` activity.

What a job hands back is a summary of bounded length. One that is longer is shortened by the job's
model; where that cannot be had, or the project's limits have no room for it, it is clipped. The
shortened text is kept in the project by the content of what it shortens, so that nothing is
summarised twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from activities import tokens
from activities.checkpoints import Root, folder_name, open_checkpoints
from activities.ending.done_when import unmet
from activities.failures import typed
from activities.heartbeats import heartbeats
from activities.job.kept_results import KeptResults
from activities.job.opening import check_root, job_id, scheduled_at
from activities.job.snapshot import Snapshot
from activities.model.asking import Asking, Question
from activities.model.endpoint import Connect
from activities.model.prices import dearest, priced
from activities.model.stream import Streamed
from activities.projects.evidence import evidence_of
from activities.projects.handoff import product, read_report, refusals
from activities.projects.repository import Repository, repository_path
from protocol.handoffs import FeatureReport, Routing, Verdict
from protocol.project_requests import TakeRequest, Work
from protocol.requests import Usage
from protocol.text import first_few

MOST_CHANGED = 50
MOST_PROBLEMS = 20
MOST_ASKED = 100_000
"""Characters of a summary that are shown to the model."""


@dataclass(frozen=True)
class Told:
    """What a job says of its work."""

    text: str
    room: int
    """Tokens that it may have."""
    tail: str
    """What the system adds: files changed, what is open."""

    @property
    def fits(self) -> bool:
        return tokens.count(self.text) <= self.room

    @property
    def clipped(self) -> str:
        return tokens.clip(self.text, self.room, "output/completion.json has all")


class Taking:
    """The `take_work` activity."""

    def __init__(self, root: Root, connect: Connect) -> None:
        self._root = root
        self._asking = Asking(root, connect)

    @activity.defn(name="take_work")
    async def take_work(self, request: TakeRequest) -> Work:
        """What a job made, and why it cannot be accepted, if so."""
        with typed():
            async with heartbeats():
                check_root(self._root, request.root)
                work, told = await asyncio.to_thread(self._take, request)
                if not told.fits:
                    told, work.usage = await self._shortened(request, told)
                work.summary = told.clipped + told.tail
                return work

    def _take(self, request: TakeRequest) -> tuple[Work, Told]:
        repository = Repository(repository_path(self._root, job_id()))
        return take(self._root, request, repository)

    async def _shortened(self, request: TakeRequest, told: Told) -> tuple[Told, Usage]:
        """The text in fewer words, and what that took; as it is when no model can be had."""
        most = request.tokens // 2  # of the rest the system may need something itself
        named = hashlib.sha256(f"{most}\n{told.text}".encode()).hexdigest()
        place = (repository_path(self._root, job_id()), f"summary-{named}")
        asked = f"In at most {most:,} tokens:\n\n{told.text[:MOST_ASKED]}"

        def question() -> Question:
            return Question.apart(self._snapshot(request), "handoff_summary", asked)

        def use(made: Streamed) -> tuple[Told, Usage]:
            text = made.text.strip() or told.text
            return Told(text, told.room, told.tail), priced(made, self._snapshot(request).config)

        kept = KeptResults(place[0]).find(place[1]) is not None
        if not kept and not await asyncio.to_thread(self._has_room, request, asked):
            return told, Usage()
        known = kept and activity.info().attempt == 1
        short, usage = await self._asking.summary(question, use, kept=place) or (told, Usage())
        # Another job's, which was paid for then.
        return short, Usage() if known else usage

    def _has_room(self, request: TakeRequest, asked: str) -> bool:
        """Whether no limit of the project could be passed by asking this."""
        config = self._snapshot(request).config
        sent = tokens.count(config.templates["handoff_summary"] + asked)
        received = max(model.max_output_tokens for model in config.models)
        price = dearest(config)
        cost = price.most(sent, received) if price else 0
        needed = {"model_calls": 1, "tokens": sent + received, "cost": cost}
        return all(needed[key] <= left for key, left in request.room.items())

    def _snapshot(self, request: TakeRequest) -> Snapshot:
        return Snapshot.load(open_checkpoints(self._root, request.job), request.checkpoint)


def take(root: Root, request: TakeRequest, repository: Repository) -> tuple[Work, Told]:
    """Put a job's work into the repository and look into it."""
    handoff = request.handoff
    snapshot = Snapshot.load(open_checkpoints(root, request.job), request.checkpoint)
    before = handoff.inputs.commit
    tree = product(repository, snapshot, request.folder, handoff)
    commit = before
    if tree != repository.tree_id(before):
        story = f"{handoff.id} by {handoff.to_agent}\n\n{handoff.task[:1000]}"
        commit = repository.commit(tree, [before], story, scheduled_at())
        repository.point(f"jobs/{folder_name(request.job)}", commit)
    changed = repository.changed(before, commit)
    work = Work(commit=commit, changed=changed[:MOST_CHANGED], problems=refusals(snapshot))
    if handoff.report:
        answer, _ = read_report(snapshot.files, handoff.report)
        work.features = answer if isinstance(answer, FeatureReport) else None
        work.routing = answer if isinstance(answer, Routing) else None
        work.verdict = answer if isinstance(answer, Verdict) else None
    work.left = _left(snapshot)
    if handoff.proof:
        work.evidence = [
            f"{check}: {run.told}"
            for check, runs in evidence_of(snapshot).runs.items()
            for run in runs[-3:]
        ]
    if work.routing and work.routing.complete:
        work.problems += _unsuccessful(snapshot, repository, request)
    work.problems = [problem[:1000] for problem in work.problems[:MOST_PROBLEMS]]
    return work, _told(snapshot, changed, request.tokens)


def _left(snapshot: Snapshot) -> dict[int, str]:
    """The given items that are not completed, by their place, and why."""
    given = [item for item in snapshot.state.scope if item.source == "given"]
    return {
        place: (item.reason or "it is unresolved")[:300]
        for place, item in enumerate(given)
        if item.status != "completed"
    }


def _unsuccessful(snapshot: Snapshot, repository: Repository, request: TakeRequest) -> list[str]:
    """Success criteria that the project's main line does not meet."""
    if not request.success:
        return []
    files = repository.put_into(snapshot.files, request.head, request.folder)
    below = files.below(request.folder)
    return [why for condition in request.success if (why := unmet(below, condition))]


def _told(snapshot: Snapshot, changed: list[str], most: int) -> Told:
    """What a job hands back: its own summary, what changed, what is open."""
    result: dict[str, Any] = {}
    if (raw := snapshot.bytes("output/completion.json")) is not None:
        result = json.loads(raw)
    tail = f"\nFiles changed: {first_few(changed, 30) or 'none'}."
    if unresolved := result.get("unresolved"):
        tail += f"\nUnresolved: {'; '.join(unresolved)[:1000]}."
    told = str(result.get("summary") or "")
    if notes := str(result.get("notes") or ""):
        told += f"\n{notes}"
    return Told(told, max(most - tokens.count(tail), most // 2), tail)
