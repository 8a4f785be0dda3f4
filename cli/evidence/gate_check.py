"""Every gate of a job decided again, from the checkpoints alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.checkpoints import Checkpoints
from activities.job.snapshot import Snapshot
from activities.preparation.agent_resolution import resolve_job_limits
from activities.steps.gate_facts import gather_gate_facts
from activities.tool_catalogue import EXTENSIONS, REGISTRY
from activities.toolkit.tool_errors import ToolError
from cli.evidence.claims import Claim
from cli.evidence.command_check import CommandRuns
from cli.evidence.run_history import HistoryCall, RunHistory, encryption_reason
from protocol.endings import GateFacts
from workflows.rules import gates

GATE_FACTS = "gate_facts"
OF_STORES = ("unstored", "store_unavailable", "refused_writes", "unexplained_writes")
"""Facts that a shared store gave, which no archive has."""
PASSED = {"judge_ending", "judge_phase", "review_job", "publish_branch", "transition", "close_job"}
"""Calls that follow only a gate that passed."""


@dataclass(frozen=True)
class GateChecks:
    """What gates are decided again with."""

    store: Checkpoints
    job: str
    commands: CommandRuns
    lost: Sequence[str] = ()
    """Checkpoints that the archive lacks."""

    def check_gates(self, runs: Sequence[RunHistory]) -> Claim:
        claim = Claim(
            "gates",
            "every phase and the job ended only where the gate let it",
            "facts read again from the checkpoints, and the gates' code of this version",
        )
        calls = [call for run in runs for call in run.calls]
        decided = [0, 0]
        for place, call in enumerate(calls):
            if call.name != GATE_FACTS or not isinstance(call.result, dict):
                continue
            following = calls[place + 1] if place + 1 < len(calls) else None
            passed = self._check_gate(claim, call, following)
            if passed is not None:
                decided[passed] += 1
        if sum(decided):
            claim.seen = f"{sum(decided)} gates: {decided[1]} passed, {decided[0]} refused"
        elif not claim.unchecked:
            claim.unchecked.append(encryption_reason(runs) or "no gate was reached")
        return claim

    def _check_gate(
        self, claim: Claim, call: HistoryCall, following: HistoryCall | None
    ) -> bool | None:
        """Return whether the gate passed; None if it could not be decided again."""
        where = f"event {call.event}, the gate at {call.base[:12]}"
        if not call.base:
            claim.unchecked.append(f"{where}: the request of the call is not known")
            return None
        if call.base in self.lost:
            claim.unchecked.append(f"{where}: the archive lacks that checkpoint")
            return None
        number = call.request.get("call")
        try:
            snapshot = Snapshot.load(self.store, call.base)
            recorded = GateFacts.model_validate(call.result["facts"])
            # Some facts are read by code that asks for the activity that it runs in.
            environment = ActivityEnvironment()
            environment.info = replace(environment.info, workflow_id=self.job)
            facts = environment.run(self._gather, snapshot, number, recorded)
        # Whatever an old or forged checkpoint does to the readers of facts is a finding.
        except Exception as error:
            claim.found.append(f"{where}: its facts cannot be read again: {error!r:.300}")
            return None
        self._compare_facts(claim, where, facts, recorded, _command(snapshot, number))
        reason = _refusal_reason(snapshot, number, facts)
        if following is not None and (why := _contradiction(reason, following)):
            claim.found.append(f"{where}: {why}")
        return not reason

    def _gather(self, snapshot: Snapshot, call: int | None, recorded: GateFacts) -> GateFacts:
        """Return the facts as they are read now, and those that need a store as they were."""
        facts = gather_gate_facts(snapshot, call, self.commands.checks)
        if _called(snapshot, call) == "job_complete":
            for extension in EXTENSIONS:
                extension.add_completion_facts(snapshot, _unresolved(snapshot, call), facts)
        copied = {name: getattr(recorded, name) for name in OF_STORES}
        if _command(snapshot, call) and (
            # Its output may differ each time, and a failure here may be for want of something.
            self.commands.checks is None or self.commands.lacks or (facts.unmet and recorded.unmet)
        ):
            copied["unmet"] = recorded.unmet
        return facts.model_copy(update=copied)

    def _compare_facts(
        self, claim: Claim, where: str, facts: GateFacts, recorded: GateFacts, command: str
    ) -> None:
        values, recorded_values = facts.model_dump(), recorded.model_dump()
        for name, value in values.items():
            if recorded_values[name] != value:
                claim.found.append(
                    f"{where}: the history says {name} = {recorded_values[name]!r:.200}, "
                    f"the checkpoint {value!r:.200}"
                )
        if any(getattr(recorded, name) for name in OF_STORES):
            claim.unchecked.append(f"{where}: what a shared store answered")
        if command and self.commands.checks is None:
            claim.unchecked.append(f"{where}: `{command:.100}`; {self.commands.why_not}")
        elif command and self.commands.lacks:
            claim.unchecked.append(f"{where}: `{command:.100}`, which had {self.commands.lacks}")


def _command(snapshot: Snapshot, call: int | None) -> str:
    """Return the command on which the todo that the call completes depends; empty without one."""
    todo = snapshot.state.phase.current if _called(snapshot, call) == "todo_complete" else None
    return (todo and todo.done_when and todo.done_when.command) or ""


def _refusal_reason(snapshot: Snapshot, call: int | None, facts: GateFacts) -> str:
    """Return why the gate refuses; empty if it passes."""
    state, limits = snapshot.state, resolve_job_limits(snapshot.config)
    outcome: gates.Refusal | gates.NextPhase | None
    match _called(snapshot, call):
        case "":
            outcome = gates.handover_gate(state, facts, limits)
        case "job_complete":
            outcome = gates.completion_gate(state, facts, state.rewinds)
        case "todo_rewind":
            return facts.arguments_error or ""
        case _:
            outcome = gates.phase_gate(state, facts, limits)
    return outcome.reason if isinstance(outcome, gates.Refusal) else ""


def _contradiction(reason: str, following: HistoryCall) -> str:
    """Return how the call after a gate contradicts the gate's decision; empty if it does not."""
    request: dict[str, Any] = following.request if isinstance(following.request, dict) else {}
    refusal = request.get("refusal")
    if reason:
        passes = following.name in PASSED and (
            request.get("outcome", "completed") == "completed"
            and request.get("status", "completed") == "completed"
        )
        if passes:
            return f"it refuses ({reason:.200}), and {following.name} followed"
        if refusal and refusal != reason[: len(refusal)]:
            return f"it refuses with another reason than the job heard: {reason:.200}"
    elif refusal:
        return f"it passes, and the job heard a refusal: {refusal:.200}"
    return ""


def _called(snapshot: Snapshot, call: int | None) -> str:
    return "" if call is None else str(snapshot.tool_call(call)["function"]["name"])


def _unresolved(snapshot: Snapshot, call: int | None) -> list[str]:
    if call is None:
        return []
    function = snapshot.tool_call(call)["function"]
    try:
        return REGISTRY[function["name"]].parse(function["arguments"]).get("unresolved") or []
    except ToolError:
        return []
