"""Runs the guards of a call that the workflow acts on, such as one that ends a phase or the job.

If such a call has a gate, the gate has passed before the guards run.
"""

from typing import Any

from activities.checkpoints import Root
from activities.guards.call_guards import CallGuards
from activities.guards.voting import ALLOW, Vote, Voter, VotingOutcome
from activities.job.activity_context import open_activity_snapshot
from activities.job.snapshot import Snapshot
from activities.phases.phase_tags import job_start_files
from activities.projects.handoff_checks import given_up_entries
from activities.projects.handoff_proof import handoff_proof_problems
from activities.projects.verifier_runs import VerifierRunner
from activities.projects.work_proof import WorkProof, known_work_proof, prove_work
from activities.redaction.secrets import redact
from activities.runtime.activity_info import activity_job_id
from activities.source_repository.job_branch import (
    job_branch_tree,
    open_branch_repository,
)
from activities.steps.root_activity import thread_activity
from activities.tool_catalogue import REGISTRY
from activities.toolkit.tool_errors import ToolError
from config.schema.work_checks import Verifier
from protocol.endings import EndingRequest, EndingVerdict
from protocol.git_address import git_address_without_user
from protocol.proof import PROOF_GUARD
from protocol.publishing import PUBLISH
from protocol.short_text import shorten_to_both_ends

QUESTION = (
    "The job is done, and its work would be pushed as branch {branch} to {remote}. "
    "`starter.py diff {job}` shows it."
)


@thread_activity
def judge_ending(root: Root, request: EndingRequest) -> EndingVerdict:
    snapshot = open_activity_snapshot(root, request)
    ending = EndingVerdict()
    name, arguments = "todo_complete", "{}"
    if request.call is not None:
        called = snapshot.tool_call(request.call)["function"]
        name, arguments = called["name"], called["arguments"]
    entry = REGISTRY[name]
    try:
        values = entry.load_arguments(arguments)
        entry.check_arguments(values)
    except ToolError as problem:
        ending.refusal = str(problem)[:2000]
        return ending
    guards = CallGuards(root, snapshot, request.approved, request.bypass)
    outcome = guards.judge_call(entry.name, values, *request.points)
    if not outcome.guard and outcome.rewriters:
        # The workflow reads the call from the conversation, so a rewrite would have no effect.
        who = outcome.rewriters[0]
        outcome = VotingOutcome(
            outcome.arguments, denied=f"{who} rewrites what cannot be rewritten", guard=who
        )
    if not outcome.guard and "job_complete" in request.points:
        outcome = guards.judge_stop(
            active=request.stop_hook_active, subagent="subagent_end" in request.points
        )
        ending.stopped = bool(outcome.denied)
    if not outcome.guard:
        work = _ending_work_proof(root, snapshot, request, values)
        proof = _ending_proof_voters(root, snapshot, request, values)
        proof += [Voter(PROOF_GUARD, lambda _: Vote("deny", work.problem))] if work.problem else []
        publishing = _ending_publish_voters(snapshot, request, work)
        guards.approved = request.push_approved
        outcome = guards.judge_voters(
            [*_ending_verifier_voters(root, snapshot, request), *publishing, *proof]
        )
    report = guards.report_outcome(outcome).model_dump(exclude_unset=True)
    ending = ending.model_copy(update=report)
    if outcome.denied:
        ending.refusal = shorten_to_both_ends(
            redact(f"Refused by {outcome.guard}: {outcome.denied}"), 2000
        )
    return ending


def _ending_work_proof(
    root: Root, snapshot: Snapshot, request: EndingRequest, values: dict[str, Any]
) -> WorkProof:
    """Return what the system's own runs show of the work on a repository, at the end of its job."""
    link = snapshot.repository
    if link is None or snapshot.link or "job_complete" not in request.points:
        return WorkProof()
    repository = open_branch_repository(root, snapshot, link)
    tree = job_branch_tree(repository, snapshot, link)
    if PROOF_GUARD in request.bypass:
        # What a person lets pass is not run.
        return known_work_proof(snapshot, repository, tree, values)
    return prove_work(root, snapshot, repository, tree, values)


def _ending_publish_voters(
    snapshot: Snapshot, request: EndingRequest, work: WorkProof
) -> list[Voter]:
    """Return the voter that asks a person to approve the push at the end of the job, if it is
    needed: by the start, or since something of the work was not proved.
    """
    link = snapshot.repository
    if link is None or request.publish is None or "job_complete" not in request.points:
        return []
    publish = request.publish.completed(link.origin.start)
    if not work.changed or not (publish.approve or work.doubts):
        return []
    question = QUESTION.format(
        branch=publish.branch,
        remote=git_address_without_user(publish.remote),
        job=activity_job_id(),
    )
    shown = [f"Tests: {work.line}." if work.line else "", *work.doubts, "; ".join(work.changed)]
    question = shorten_to_both_ends(" ".join(filter(None, [question, *shown])), 1900)
    return [Voter(PUBLISH, lambda _: Vote("ask", question))]


def _ending_verifier_voters(root: Root, snapshot: Snapshot, request: EndingRequest) -> list[Voter]:
    kind = snapshot.state.phase.kind
    ends_phase, ends_job = "phase_end" in request.points, "job_complete" in request.points
    if not snapshot.config.verifiers:
        return []
    start = job_start_files(snapshot.checkpoints)
    runner = VerifierRunner(root, activity_job_id(), snapshot.config, start)

    def make_voter(verifier: Verifier) -> Voter:
        def run_verifier(arguments: dict[str, Any]) -> Vote:
            finding = runner.run_verifier(snapshot.files, verifier, ends_job=ends_job)
            return Vote("deny", finding.text, undecided=not finding.decided) if finding else ALLOW

        return Voter(verifier.name, run_verifier)

    return [
        make_voter(verifier)
        for verifier in snapshot.config.verifiers
        if ends_job or (ends_phase and kind in verifier.phases)
    ]


def _ending_proof_voters(
    root: Root, snapshot: Snapshot, request: EndingRequest, values: dict[str, Any]
) -> list[Voter]:
    if (link := snapshot.link) is None or "subagent_end" not in request.points:
        return []

    def check_proof(arguments: dict[str, Any]) -> Vote:
        entries = values.get("unresolved") or []
        if given_up_entries(link.handoff, entries):
            # The job gives up explicitly: the project sees the same and asks a person.
            return ALLOW
        why = handoff_proof_problems(root, activity_job_id(), snapshot, entries)
        return Vote("deny", why) if why else ALLOW

    return [Voter(PROOF_GUARD, check_proof, costly=True)]
