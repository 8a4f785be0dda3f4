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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from activities.checkpoints import Root, folder_name, open_checkpoints
from activities.job.activity_context import check_root, job_id, scheduled_at
from activities.job.done_when import unmet
from activities.job.kept_results import KeptResults
from activities.job.snapshot import Snapshot
from activities.model.client import Asking, Question
from activities.model.endpoint import Connect
from activities.model.prices import dearest, priced
from activities.model.stream import Streamed
from activities.projects.evidence import tool_proofs
from activities.projects.handoff import product, read_report, refusals, with_new_tests
from activities.projects.proof_run import proved
from activities.projects.repository import Repository, repository_path
from activities.runtime.failures import typed
from activities.runtime.heartbeats import heartbeats
from activities.text import tokens
from protocol.handoffs import FeatureReport, Routing, TesterVerdict
from protocol.project_requests import ChildWork, TakeWorkRequest
from protocol.proof import Proof
from protocol.requests import Usage
from protocol.text import both_ends, commit_message, first_few, start_of

MOST_CHANGED = 50
MOST_PROBLEMS = 20
MOST_PROBLEM = 2000
"""Characters of one."""
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
    async def take_work(self, request: TakeWorkRequest) -> ChildWork:
        """What a job made, and why it cannot be accepted, if so."""
        with typed():
            async with heartbeats():
                check_root(self._root, request.root)
                work, told = await asyncio.to_thread(self._take, request)
                if not told.fits:
                    told, work.usage = await self._shortened(request, told)
                work.summary = told.clipped + told.tail
                return work

    def _take(self, request: TakeWorkRequest) -> tuple[ChildWork, Told]:
        repository = Repository(repository_path(self._root, job_id()))
        return take(self._root, request, repository)

    async def _shortened(self, request: TakeWorkRequest, told: Told) -> tuple[Told, Usage]:
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

    def _has_room(self, request: TakeWorkRequest, asked: str) -> bool:
        """Whether no limit of the project could be passed by asking this."""
        config = self._snapshot(request).config
        sent = tokens.count(config.templates["handoff_summary"] + asked)
        received = max(model.max_output_tokens for model in config.models)
        price = dearest(config)
        cost = price.max_cost(sent, received) if price else 0
        needed = {"model_calls": 1, "tokens": sent + received, "cost": cost}
        return all(needed[key] <= left for key, left in request.room.items())

    def _snapshot(self, request: TakeWorkRequest) -> Snapshot:
        return Snapshot.load(open_checkpoints(self._root, request.job), request.checkpoint)


def take(root: Root, request: TakeWorkRequest, repository: Repository) -> tuple[ChildWork, Told]:
    """Put a job's work into the repository and look into it."""
    handoff = request.handoff
    snapshot = Snapshot.load(open_checkpoints(root, request.job), request.checkpoint)
    told = _told(snapshot)
    work = ChildWork(commit=handoff.inputs.commit, problems=refusals(snapshot))
    if handoff.report:
        answer, _ = read_report(snapshot.files, handoff.report)
        work.features = answer if isinstance(answer, FeatureReport) else None
        work.routing = answer if isinstance(answer, Routing) else None
        work.verdict = answer if isinstance(answer, TesterVerdict) else None
    if handoff.report == "verdict":
        _take_verdict(root, repository, snapshot, work, told)
    else:
        tree = product(repository, snapshot, request.folder, handoff)
        _commit(repository, snapshot, work, tree, told)
        if not work.problems and not handoff.report:
            made = proved(root, job_id(), snapshot, tree)
            work.proofs, work.problems = made.proofs, made.problems
    for run in work.proofs:
        run.commit = run.commit or work.commit
    changed = repository.changed(handoff.inputs.commit, work.commit)
    work.changed = changed[:MOST_CHANGED]
    work.left_items = _left(snapshot)
    if work.routing and work.routing.complete:
        work.problems += _unsuccessful(snapshot, repository, request)
    work.problems = [both_ends(problem, MOST_PROBLEM) for problem in work.problems[:MOST_PROBLEMS]]
    return work, _room_for(told, changed, request.tokens)


def _take_verdict(
    root: Root, repository: Repository, snapshot: Snapshot, work: ChildWork, told: Said
) -> None:
    """Prove what a tester passed; keep the tests that it wrote, whatever they show."""
    verdict, before = work.verdict, work.commit
    if verdict is None or work.problems:
        return
    tree, paths = with_new_tests(repository, snapshot)
    if verdict.passed:
        made = proved(root, job_id(), snapshot, repository.tree_id(before))
        work.proofs, work.problems = made.proofs, made.problems
        for run in work.proofs:
            run.commit = before
        work.proofs += tool_proofs(snapshot, before)
    if not paths or work.problems:
        return
    made = proved(root, job_id(), snapshot, tree)
    _commit(repository, snapshot, work, tree, told)
    work.tests = paths[:MOST_CHANGED]
    if not verdict.passed:
        work.proofs = made.proofs
    elif made.problems:
        work.problems = made.problems
    elif _count(made.proofs) > _count(work.proofs):
        work.proofs = [*made.proofs, *(run for run in work.proofs if run.tests is None)]
    else:
        # Nothing runs them: they stay on the branch of the tester's job.
        work.commit = before


def _count(proofs: list[Proof]) -> int:
    return sum(run.tests or 0 for run in proofs)


def _commit(
    repository: Repository, snapshot: Snapshot, work: ChildWork, tree: str, told: Said
) -> None:
    """Put what a job made on a branch of its own, with what it says of it."""
    if snapshot.link is None or tree == repository.tree_id(work.commit):
        return
    handoff, job = snapshot.link.handoff, f"{snapshot.link.id}.{snapshot.link.handoff.id}"
    story = commit_message(told.summary or f"Work of {handoff.id}", {"Job": job})
    work.commit = repository.commit(tree, [work.commit], story, scheduled_at())
    repository.point(f"jobs/{folder_name(job)}", work.commit)


def _left(snapshot: Snapshot) -> dict[int, str]:
    """The given items that are not completed, by their place, and why."""
    given = [item for item in snapshot.state.scope if item.source == "given"]
    return {
        place: (item.reason or "it is unresolved")[:300]
        for place, item in enumerate(given)
        if item.status != "completed"
    }


def _unsuccessful(
    snapshot: Snapshot, repository: Repository, request: TakeWorkRequest
) -> list[str]:
    """Success criteria that the project's main line does not meet."""
    if not request.success:
        return []
    files = repository.put_into(snapshot.files, request.head, request.folder)
    below = files.below(request.folder)
    return [why for condition in request.success if (why := unmet(below, condition))]


@dataclass(frozen=True)
class Said:
    """What a job said of its work at its end."""

    summary: str = ""
    notes: str = ""
    unresolved: Sequence[str] = ()


def _told(snapshot: Snapshot) -> Said:
    result: dict[str, Any] = {}
    if (raw := snapshot.bytes("output/completion.json")) is not None:
        result = json.loads(raw)
    return Said(
        str(result.get("summary") or ""),
        str(result.get("notes") or ""),
        result.get("unresolved") or (),
    )


def _room_for(said: Said, changed: list[str], most: int) -> Told:
    """What a job hands back: its own summary, what changed, what is open."""
    tail = f"\nFiles changed: {first_few(changed, 30) or 'none'}."
    if said.unresolved:
        tail += f"\nUnresolved: {start_of('; '.join(said.unresolved), 1000)}."
    text = f"{said.summary}\n{said.notes}" if said.notes else said.summary
    return Told(text, max(most - tokens.count(tail), most // 2), tail)
