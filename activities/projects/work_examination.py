"""Examines a job's work for its project, before it counts."""

from __future__ import annotations

from activities.checkpoints import CheckpointMissing, Root, job_folder_name, open_checkpoints
from activities.job.activity_context import activity_job_id, activity_schedule_time
from activities.job.checkpoint_fetch import fetch_snapshot
from activities.job.done_when import unmet_condition_reason
from activities.job.snapshot import Snapshot
from activities.projects.handoff_checks import handoff_problems, read_handoff_report
from activities.projects.handoff_proof import prove_tree
from activities.projects.product_tree import handoff_product_tree, handoff_tree_with_new_tests
from activities.projects.project_repository import ProjectRepository
from activities.projects.tool_evidence import tool_proofs
from activities.projects.work_summary import (
    CompletionReport,
    WorkSummary,
    read_completion_report,
    summarize_work,
)
from protocol.agent_reports import FeatureReport, Routing, TesterVerdict
from protocol.commit_message import commit_message
from protocol.project_requests import ChildWork, TakeWorkRequest
from protocol.proof import Proof
from protocol.short_text import shorten_to_both_ends

MAX_CHANGED = 50
MAX_PROBLEMS = 20
MAX_PROBLEM_CHARACTERS = 2000
"""Maximum length of a problem."""


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
    if handoff.report == "verdict":
        _settle_tester_verdict(root, repository, snapshot, work, report)
    else:
        tree = handoff_product_tree(repository, snapshot, request.folder, handoff)
        _commit_work_to_branch(repository, snapshot, work, tree, report)
        if not work.problems and not handoff.report:
            result = prove_tree(root, activity_job_id(), snapshot, tree, report.unresolved)
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
    return work, summarize_work(report, changed, request.tokens)


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
        result = prove_tree(root, activity_job_id(), snapshot, repository.tree_id(before))
        work.proofs, work.problems = result.proofs, result.problems
        for run in work.proofs:
            run.commit = before
        work.proofs += tool_proofs(snapshot, before)
    if not paths or work.problems:
        return
    result = prove_tree(root, activity_job_id(), snapshot, tree)
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
