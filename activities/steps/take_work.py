"""The `take_work` activity: examines a job's work before it counts.

A job hands back a summary of bounded length. The job's model shortens one that is too long; if no
model is available or the project's limits leave no room, it is clipped. Shortened texts are cached
in the project by the hash of the original, so nothing is summarised twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from activities.checkpoints import CheckpointMissing, Root, job_folder_name, open_checkpoints
from activities.job.activity_context import (
    activity_job_id,
    activity_schedule_time,
    check_activity_root,
)
from activities.job.done_when import unmet_condition_reason
from activities.job.fetch import fetch_snapshot
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.model.client import ModelClient, ModelQuery
from activities.model.endpoint import Connect
from activities.model.prices import highest_price, priced_usage
from activities.model.reply_stream import StreamedReply
from activities.projects.handoff import (
    handoff_problems,
    handoff_product_tree,
    handoff_tree_with_new_tests,
    read_handoff_report,
)
from activities.projects.project_remote import open_remote_project, push_project
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.projects.proof_run import prove_handoff
from activities.projects.tool_evidence import tool_proofs
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats
from activities.text import tokens
from protocol.agent_reports import FeatureReport, Routing, TesterVerdict
from protocol.commit_message import commit_message
from protocol.project_requests import ChildWork, TakeWorkRequest
from protocol.proof import Proof
from protocol.short_text import first_few, shorten_to_both_ends, shorten_to_start
from protocol.usage import Usage

MAX_CHANGED = 50
MAX_PROBLEMS = 20
MAX_PROBLEM_CHARACTERS = 2000
"""Maximum length of a problem."""
MAX_PROMPT_CHARACTERS = 100_000
"""Maximum length of a summary in the prompt that shortens it."""


@dataclass(frozen=True)
class TakenWorkSummary:
    """A job's summary of its work."""

    text: str
    room: int
    """Token limit of the text."""
    tail: str
    """Text that the system appends: changed files and unresolved points."""

    @property
    def fits_room(self) -> bool:
        return tokens.count_tokens(self.text) <= self.room

    @property
    def clipped_text(self) -> str:
        return tokens.clip_to_tokens(self.text, self.room, "output/completion.json has all")


class TakeWorkActivity:
    """The `take_work` activity."""

    def __init__(self, root: Root, connect: Connect) -> None:
        self._root = root
        self._model_client = ModelClient(root, connect)

    @activity.defn(name="take_work")
    async def take_work(self, request: TakeWorkRequest) -> ChildWork:
        """Return what a job made, with problems if it cannot be accepted."""
        with typed_failures():
            async with heartbeats():
                check_activity_root(self._root, request.root, request.remote)
                work, summary = await asyncio.to_thread(self._inspect_work, request)
                if not summary.fits_room:
                    summary, work.usage = await self._shorten_summary(request, summary)
                work.summary = summary.clipped_text + summary.tail
                return work

    def _inspect_work(self, request: TakeWorkRequest) -> tuple[ChildWork, TakenWorkSummary]:
        needed = (request.head, request.handoff.inputs.commit)
        repository = open_remote_project(self._root, activity_job_id(), request.remote, *needed)
        result = examine_work(self._root, request, repository)
        push_project(repository, activity_job_id(), request.remote)
        return result

    async def _shorten_summary(
        self, request: TakeWorkRequest, summary: TakenWorkSummary
    ) -> tuple[TakenWorkSummary, Usage]:
        """Return a shortened summary and its usage; the original if no model is available."""
        most = request.tokens // 2  # half is reserved for the system's own tail
        named = hashlib.sha256(f"{most}\n{summary.text}".encode()).hexdigest()
        place = (project_repository_path(self._root, activity_job_id()), f"summary-{named}")
        prompt = f"In at most {most:,} tokens:\n\n{summary.text[:MAX_PROMPT_CHARACTERS]}"

        def summary_question() -> ModelQuery:
            return ModelQuery.with_own_prompt(
                self._load_snapshot(request), "handoff_summary", prompt
            )

        def use_reply(reply: StreamedReply) -> tuple[TakenWorkSummary, Usage]:
            text = reply.text.strip() or summary.text
            return TakenWorkSummary(text, summary.room, summary.tail), priced_usage(
                reply, self._load_snapshot(request).config
            )

        is_cached = ResultCache(place[0]).find(place[1]) is not None
        if not is_cached and not await asyncio.to_thread(self._has_room, request, prompt):
            return summary, Usage()
        known = is_cached and activity.info().attempt == 1
        short, usage = await self._model_client.request_summary(
            summary_question, use_reply, reply_key=place
        ) or (
            summary,
            Usage(),
        )
        # A cached summary was paid for by an earlier job.
        return short, Usage() if known else usage

    def _has_room(self, request: TakeWorkRequest, prompt: str) -> bool:
        """Return whether the request fits all limits of the project."""
        config = self._load_snapshot(request).config
        sent = tokens.count_tokens(config.templates["handoff_summary"] + prompt)
        received = max(model.max_output_tokens for model in config.models)
        price = highest_price(config)
        cost = price.max_cost(sent, received) if price else 0
        needed = {"model_calls": 1, "tokens": sent + received, "cost": cost}
        return all(needed[key] <= remaining for key, remaining in request.room.items())

    def _load_snapshot(self, request: TakeWorkRequest) -> Snapshot:
        return load_work(self._root, request)


def load_work(root: Root, request: TakeWorkRequest) -> Snapshot:
    """Load the job's last checkpoint, fetching it if another host made it."""
    try:
        return Snapshot.load(open_checkpoints(root, request.job), request.checkpoint)
    except CheckpointMissing:
        if not request.remote:
            raise
        return fetch_snapshot(root, request.job, request.remote, request.checkpoint)


def examine_work(
    root: Root, request: TakeWorkRequest, repository: ProjectRepository
) -> tuple[ChildWork, TakenWorkSummary]:
    """Put a job's work into the repository and examine it."""
    handoff = request.handoff
    snapshot = load_work(root, request)
    report = _read_work_completion(snapshot)
    work = ChildWork(commit=handoff.inputs.commit, problems=handoff_problems(snapshot))
    if handoff.report:
        answer, _ = read_handoff_report(snapshot.files, handoff.report)
        work.features = answer if isinstance(answer, FeatureReport) else None
        work.routing = answer if isinstance(answer, Routing) else None
        work.verdict = answer if isinstance(answer, TesterVerdict) else None
    if handoff.report == "verdict":
        _settle_tester_verdict(root, repository, snapshot, work, report)
    else:
        tree = handoff_product_tree(repository, snapshot, request.folder, handoff)
        _commit_work_to_branch(repository, snapshot, work, tree, report)
        if not work.problems and not handoff.report:
            result = prove_handoff(root, activity_job_id(), snapshot, tree)
            work.proofs, work.problems = result.proofs, result.problems
    for run in work.proofs:
        run.commit = run.commit or work.commit
    changed = repository.changed_paths(handoff.inputs.commit, work.commit)
    work.changed = changed[:MAX_CHANGED]
    work.left_items = _open_work_items(snapshot)
    if work.routing and work.routing.complete:
        work.problems += _unmet_work_success(snapshot, repository, request)
    work.problems = [
        shorten_to_both_ends(problem, MAX_PROBLEM_CHARACTERS)
        for problem in work.problems[:MAX_PROBLEMS]
    ]
    return work, _summarize_work(report, changed, request.tokens)


def _settle_tester_verdict(
    root: Root,
    repository: ProjectRepository,
    snapshot: Snapshot,
    work: ChildWork,
    report: CompletionReport,
) -> None:
    """Prove what a tester passed; keep the tester's tests, whatever the verdict."""
    verdict, before = work.verdict, work.commit
    if verdict is None or work.problems:
        return
    tree, paths = handoff_tree_with_new_tests(repository, snapshot)
    if verdict.passed:
        result = prove_handoff(root, activity_job_id(), snapshot, repository.tree_id(before))
        work.proofs, work.problems = result.proofs, result.problems
        for run in work.proofs:
            run.commit = before
        work.proofs += tool_proofs(snapshot, before)
    if not paths or work.problems:
        return
    result = prove_handoff(root, activity_job_id(), snapshot, tree)
    _commit_work_to_branch(repository, snapshot, work, tree, report)
    work.tests = paths[:MAX_CHANGED]
    if not verdict.passed:
        work.proofs = result.proofs
    elif result.problems:
        work.problems = result.problems
    elif _total_test_count(result.proofs) > _total_test_count(work.proofs):
        work.proofs = [*result.proofs, *(run for run in work.proofs if run.tests is None)]
    else:
        # No command runs the new tests: they stay on the branch of the tester's job.
        work.commit = before


def _total_test_count(proofs: list[Proof]) -> int:
    return sum(run.tests or 0 for run in proofs)


def _commit_work_to_branch(
    repository: ProjectRepository,
    snapshot: Snapshot,
    work: ChildWork,
    tree: str,
    report: CompletionReport,
) -> None:
    """Commit the job's work to its own branch, with its summary as the message."""
    if snapshot.link is None or tree == repository.tree_id(work.commit):
        return
    handoff, job = snapshot.link.handoff, f"{snapshot.link.id}.{snapshot.link.handoff.id}"
    story = commit_message(report.summary or f"Work of {handoff.id}", {"Job": job})
    work.commit = repository.commit(tree, [work.commit], story, activity_schedule_time())
    repository.set_branch(f"jobs/{job_folder_name(job)}", work.commit)


def _open_work_items(snapshot: Snapshot) -> dict[int, str]:
    """Map positions of given items that are not completed to the reason."""
    assigned = [item for item in snapshot.state.scope if item.source == "given"]
    return {
        place: (item.reason or "it is unresolved")[:300]
        for place, item in enumerate(assigned)
        if item.status != "completed"
    }


def _unmet_work_success(
    snapshot: Snapshot, repository: ProjectRepository, request: TakeWorkRequest
) -> list[str]:
    """Return success criteria that the project's main line does not meet."""
    if not request.success:
        return []
    files = repository.put_into(snapshot.files, request.head, request.folder)
    below = files.subfolder(request.folder)
    return [
        why for condition in request.success if (why := unmet_condition_reason(below, condition))
    ]


@dataclass(frozen=True)
class CompletionReport:
    """A job's final statements on its work."""

    summary: str = ""
    notes: str = ""
    unresolved: Sequence[str] = ()


def _read_work_completion(snapshot: Snapshot) -> CompletionReport:
    result: dict[str, Any] = {}
    if (raw := snapshot.read_bytes("output/completion.json")) is not None:
        result = json.loads(raw)
    return CompletionReport(
        str(result.get("summary") or ""),
        str(result.get("notes") or ""),
        result.get("unresolved") or (),
    )


def _summarize_work(report: CompletionReport, changed: list[str], most: int) -> TakenWorkSummary:
    """Build the summary from the job's own text, changed files and unresolved points."""
    tail = f"\nFiles changed: {first_few(changed, 30) or 'none'}."
    if report.unresolved:
        tail += f"\nUnresolved: {shorten_to_start('; '.join(report.unresolved), 1000)}."
    text = f"{report.summary}\n{report.notes}" if report.notes else report.summary
    return TakenWorkSummary(text, max(most - tokens.count_tokens(tail), most // 2), tail)
