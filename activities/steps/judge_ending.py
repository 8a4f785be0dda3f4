"""The guards of a call that the workflow acts on, such as one that ends a phase or the job.

Where a gate of its own stands before that, it has passed when they are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from temporalio import activity

from activities.checkpoints import Root
from activities.commands.check_commands import Checks
from activities.guards.calls import Guards
from activities.guards.voting import ALLOW, Outcome, Vote, Voter
from activities.job.activity_context import job_id, open_snapshot
from activities.job.snapshot import Snapshot
from activities.projects.handoff import unproved_work
from activities.redaction.secrets import redact
from activities.runtime.failures import typed
from activities.runtime.heartbeats import heartbeats_from_thread
from activities.steps.gate_facts import explained
from activities.tool_catalogue import REGISTRY
from activities.toolkit.errors import ToolError
from config.schema.agent_sections import Verifier
from protocol.endings import EndingRequest, EndingVerdict
from protocol.text import both_ends

PROOF = "proof"
"""By which name the system's own runs refuse."""


def endings_activity(root: Root) -> Callable[[EndingRequest], EndingVerdict]:
    """The `judge_ending` activity."""

    @activity.defn(name="judge_ending")
    def judge_ending(request: EndingRequest) -> EndingVerdict:
        with typed(), heartbeats_from_thread():
            return _judge(root, request)

    return judge_ending


def _judge(root: Root, request: EndingRequest) -> EndingVerdict:
    snapshot = open_snapshot(root, request)
    ending = EndingVerdict()
    name, arguments = "todo_complete", "{}"
    if request.call is not None:
        called = snapshot.call(request.call)["function"]
        name, arguments = called["name"], called["arguments"]
    entry = REGISTRY[name]
    try:
        given = entry.given(arguments)
        entry.check(given)
    except ToolError as problem:
        ending.refusal = str(problem)[:2000]
        return ending
    guards = Guards(root, snapshot, request.approved, request.bypass)
    outcome = guards.before(entry.name, given, *request.points)
    if not outcome.guard and outcome.rewritten:
        # What ends something is read from the conversation, as the model sent it.
        who = outcome.rewritten[0]
        outcome = Outcome(
            outcome.arguments, denied=f"{who} rewrites what cannot be rewritten", guard=who
        )
    if not outcome.guard and "job_complete" in request.points:
        outcome = guards.stop(
            active=request.stop_hook_active, subagent="subagent_end" in request.points
        )
        ending.stopped = bool(outcome.denied)
    if not outcome.guard:
        proof = _proof(root, snapshot, request, given)
        outcome = guards.also([*_verifiers(root, snapshot, request), *proof])
    told = guards.report(outcome).model_dump(exclude_unset=True)
    ending = ending.model_copy(update=told)
    if outcome.denied:
        ending.refusal = both_ends(redact(f"Refused by {outcome.guard}: {outcome.denied}"), 2000)
    return ending


def _verifiers(root: Root, snapshot: Snapshot, request: EndingRequest) -> list[Voter]:
    """The commands that must succeed before what the call ends may end."""
    checks, kind = Checks(root, job_id(), snapshot.config), snapshot.state.phase.kind
    ends_phase, ends_job = "phase_end" in request.points, "job_complete" in request.points

    def voter(verifier: Verifier) -> Voter:
        def ask(arguments: dict[str, Any]) -> Vote:
            finding = checks.finding(snapshot.files, verifier.command, verifier.seconds)
            return Vote("deny", finding.text, undecided=not finding.decided) if finding else ALLOW

        return Voter(verifier.name, ask)

    return [
        voter(verifier)
        for verifier in snapshot.config.verifiers
        if ends_job or (ends_phase and kind in verifier.phases)
    ]


def _proof(
    root: Root, snapshot: Snapshot, request: EndingRequest, given: dict[str, Any]
) -> list[Voter]:
    """For a job of a project: the system's own run of what it hands over."""
    if (link := snapshot.link) is None or "subagent_end" not in request.points:
        return []

    def ask(arguments: dict[str, Any]) -> Vote:
        entries = given.get("unresolved") or []
        if not link.handoff.report and any(explained(c, c, entries) for c in link.handoff.tests):
            # It gives up, and says so: the project finds the same and takes the work back.
            return ALLOW
        why = unproved_work(root, job_id(), snapshot)
        return Vote("deny", why) if why else ALLOW

    return [Voter(PROOF, ask, costly=True)]
