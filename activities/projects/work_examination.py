"""Examines a job's work for its project, before it counts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pygit2.enums import DeltaStatus

from activities.checkpoints import CheckpointMissing, Root, job_folder_name, open_checkpoints
from activities.job.activity_context import fetch_snapshot
from activities.job.done_when import unmet_condition_reason
from activities.job.snapshot import Snapshot
from activities.projects.handoff_checks import (
    given_up_entries,
    handoff_problems,
    read_handoff_report,
)
from activities.projects.handoff_proof import edited_product_problem
from activities.projects.handoff_runs import prove_tree
from activities.projects.product_tree import (
    handoff_product_tree,
    handoff_tree_with_new_tests,
    restore_written_tests,
)
from activities.projects.project_repository import ProjectRepository
from activities.projects.tests_by_name import is_test_file
from activities.projects.tool_evidence import tool_proofs
from activities.runtime.activity_info import activity_job_id, activity_schedule_seconds
from activities.text import tokens
from protocol.agent_reports import FeatureReport, Routing, TesterVerdict
from protocol.commit_message import commit_message
from protocol.endings import COMPLETION_FILE
from protocol.handoffs import Handoff
from protocol.project_requests import ChildWork, TakeWorkRequest
from protocol.proof import Proof
from protocol.short_text import first_few, shorten_to_both_ends, shorten_to_start


@dataclass(frozen=True)
class WorkSummary:
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


@dataclass(frozen=True)
class CompletionReport:
    """A job's final statements on its work."""

    summary: str = ""
    notes: str = ""
    unresolved: Sequence[str] = ()


def read_completion_report(snapshot: Snapshot) -> CompletionReport:
    result: dict[str, Any] = {}
    if (raw := snapshot.read_bytes(COMPLETION_FILE)) is not None:
        result = json.loads(raw)
    return CompletionReport(
        str(result.get("summary") or ""),
        str(result.get("notes") or ""),
        result.get("unresolved") or (),
    )


def summarize_work(
    report: CompletionReport, changed: list[str], left_out: list[str], most: int
) -> WorkSummary:
    """Build the summary from the job's own text, changed files and unresolved points.

    Args:
        left_out: Changes in its copy that are not taken over.
    """
    tail = f"\nFiles changed: {first_few(changed, 30) or 'none'}."
    if left_out:
        tail += f"\nChanged in its copy alone, and not taken over: {first_few(left_out, 30)}."
    if report.unresolved:
        tail += f"\nUnresolved: {shorten_to_start('; '.join(report.unresolved), 1000)}."
    text = f"{report.summary}\n{report.notes}" if report.notes else report.summary
    return WorkSummary(text, max(most - tokens.count_tokens(tail), most // 2), tail)


MAX_CHANGED = 50
MAX_PROBLEMS = 20
MAX_PROBLEM_CHARACTERS = 2000
"""Maximum length of a problem."""
MAX_DIFF = 3000
"""Most characters of the changes to tests that a tester is shown."""


def load_finished_work(root: Root, request: TakeWorkRequest) -> Snapshot:
    """Load the job's last checkpoint, fetching it if another host made it."""
    try:
        return Snapshot.load(open_checkpoints(root, request.job), request.checkpoint)
    except CheckpointMissing:
        if not request.remote:
            raise
        return fetch_snapshot(root, request.job, request.remote, request.checkpoint)


def examine_work(
    root: Root, request: TakeWorkRequest, repository: ProjectRepository
) -> tuple[ChildWork, WorkSummary]:
    """Put a job's work into the repository and examine it."""
    handoff = request.handoff
    snapshot = load_finished_work(root, request)
    report = read_completion_report(snapshot)
    work = ChildWork(commit=handoff.inputs.commit, problems=handoff_problems(snapshot))
    if handoff.report:
        answer, _ = read_handoff_report(snapshot.files, handoff.report)
        work.features = answer if isinstance(answer, FeatureReport) else None
        work.routing = answer if isinstance(answer, Routing) else None
        work.verdict = answer if isinstance(answer, TesterVerdict) else None
    left_out = list[str]()
    if handoff.report == "verdict":
        left_out = _settle_tester_verdict(root, repository, snapshot, work, report)
    else:
        tree = handoff_product_tree(repository, snapshot, request.folder, handoff)
        tree, _ = restore_written_tests(repository, handoff, tree, report.unresolved)
        _commit_work_to_branch(repository, snapshot, work, tree, report)
        if handoff.tests and not handoff.report:
            work.test_changes = _earlier_tests_diff(repository, handoff, tree)
        if not work.problems and not handoff.report:
            result = prove_tree(root, activity_job_id(), snapshot, tree, report.unresolved)
            work.proofs, work.problems = result.proofs, result.problems
        if work.problems and (entries := given_up_entries(handoff, report.unresolved)):
            # Where the job changed nothing, a run shows only that nothing is there.
            shown = work.problems if work.commit != handoff.inputs.commit else []
            work.given_up, work.problems = True, [*entries, *shown]
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
    return work, summarize_work(report, changed, left_out, request.tokens)


def _earlier_tests_diff(repository: ProjectRepository, handoff: Handoff, tree: str) -> str:
    """Return how a tree differs in tests that are older than the job, as a diff."""
    shown = dict[str, str]()
    for commit in (handoff.inputs.commit, handoff.inputs.base or handoff.inputs.commit):
        difference = repository.diff_from(commit, tree)
        difference.find_similar()
        for patch in difference:
            if patch and patch.delta.status != DeltaStatus.ADDED:
                shown[patch.delta.old_file.path] = patch.data.decode(errors="replace")
    changed = "".join(text for path, text in sorted(shown.items()) if is_test_file(path))
    return shorten_to_start(changed, MAX_DIFF)


def _settle_tester_verdict(
    root: Root,
    repository: ProjectRepository,
    snapshot: Snapshot,
    work: ChildWork,
    report: CompletionReport,
) -> list[str]:
    """Prove what a tester passed; keep the tester's tests, whatever the verdict.

    Returns:
        What else is in its copy and is not taken over.
    """
    verdict, before = work.verdict, work.commit
    if verdict is None or work.problems:
        return []
    job = activity_job_id()
    tree, paths, left_out = handoff_tree_with_new_tests(repository, snapshot)
    if verdict.passed:
        handed, entries = repository.tree_id(before), report.unresolved
        result = prove_tree(root, job, snapshot, handed, entries, is_own=False)
        edits = edited_product_problem(root, job, snapshot)
        work.proofs, work.problems = result.proofs, [*filter(None, [edits]), *result.problems]
        for run in work.proofs:
            run.commit = before
        work.proofs += tool_proofs(snapshot, before)
    if work.problems or not (paths or verdict.passed):
        return left_out
    result = prove_tree(root, job, snapshot, tree, report.unresolved)
    if not paths:
        work.problems = result.problems
        return left_out
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
    return left_out


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
    if snapshot.link is None:
        return
    handoff, job = snapshot.link.handoff, f"{snapshot.link.id}.{snapshot.link.handoff.id}"
    if tree != repository.tree_id(work.commit):
        story = commit_message(report.summary or f"Work of {handoff.id}", {"Job": job})
        work.commit = repository.commit(tree, [work.commit], story, activity_schedule_seconds())
    work.branch = f"jobs/{job_folder_name(job)}"
    repository.set_branch(work.branch, work.commit)


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
