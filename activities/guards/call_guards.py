"""The guards of one tool call, before and after it: declared guards and hooks together."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from activities.checkpoints import Files, Root
from activities.guards.hooks.voters import Hooks
from activities.guards.matching import GuardSituation, match_guard_groups
from activities.guards.tool_routes import tools_routed_to_approval
from activities.guards.voting import ALLOW, Vote, Voter, VotingOutcome, settle_votes
from activities.job.snapshot import Snapshot
from activities.redaction.secrets import redact
from activities.runtime import metrics
from activities.runtime.activity_info import activity_job_id, activity_schedule_ms
from config.guard_files import render_guard_argument
from config.schema.agent import ConfigError
from config.schema.guards import Guard, GuardPoint, GuardStage, HookEvent
from protocol.requests import GuardOutcome
from protocol.short_text import shorten_to_start
from protocol.trace_requests import MOST_CHARACTERS

BY_CONFIGURATION = "approve"
"""Name used when the configuration asks a person, and no guard."""
CONFIGURED = "The agent's configuration asks for approval of each call of this tool."


@dataclass
class CallGuards:
    root: Root
    snapshot: Snapshot
    approved: bool = False
    bypass: Sequence[str] = ()
    remarks: list[str] = field(default_factory=list)
    """Decisions other than refusals, for people."""
    trials: list[str] = field(default_factory=list)
    bypassed_guard: str = ""
    rewritten_arguments: dict[str, Any] = field(default_factory=dict)
    rewriters: tuple[str, ...] = ()

    def judge_call(
        self, tool: str, arguments: dict[str, Any], *points: GuardPoint
    ) -> VotingOutcome:
        rule_voters = [
            self._guard_voter(guard, point, tool)
            for point in ("before_tool", *points)
            for guard in self._guards_in_stage()
            if guard.point == point and guard.match.changes is None
        ]
        voters = [
            *self._approval_voters(tool),
            *rule_voters,
            *self._hooks.voters("PreToolUse", tool),
        ]
        outcome = self._settle_votes(voters, arguments)
        # They voted before the call was approved.
        for point in () if outcome.denied or self.approved else ("before_tool", *points):
            self._try_experiments(self._make_situation(point, tool, arguments, ""))
        if outcome.asks:
            outcome = self._may_be_permitted(tool, outcome, voters)
        would = outcome
        if outcome.asks:
            # A person approves the call as it would run, not as it was sent.
            would = settle_votes(voters, arguments, approved=True, bypass=self.bypass)
            if would.denied:
                # Nobody is asked about a call that is refused anyway.
                outcome = would
        self.rewriters = would.rewriters
        self.rewritten_arguments = {
            name: value
            for name, value in would.arguments.items()
            if name not in arguments or arguments[name] != value
        }
        for name in outcome.rewriters:
            self.remarks.append(f"guard {name} rewrote the arguments of {tool}")
        return outcome

    def judge_stop(self, *, active: bool, subagent: bool = False) -> VotingOutcome:
        """Ask the hooks about the end; `active`: prevented before; `subagent`: of a project."""
        event: HookEvent = "SubagentStop" if subagent else "Stop"
        return self._settle_votes(self._hooks.voters(event, stop_hook_active=active), {})

    def judge_voters(self, voters: list[Voter]) -> VotingOutcome:
        """Ask voters other than guards, such as verifiers; people may bypass them like guards."""
        return self._settle_votes(voters, {})

    def judge_change(self, tool: str, arguments: dict[str, Any], after: Files) -> VotingOutcome:
        """Ask the guards on changed fields, once the files after the call are known."""
        voters = [
            self._guard_voter(guard, "before_tool", tool, after)
            for guard in self._guards_in_stage()
            if guard.match.changes is not None
        ]
        outcome = self._settle_votes(voters, arguments)
        if not outcome.denied:
            self._try_experiments(self._make_situation("before_tool", tool, arguments, "", after))
        return outcome

    def add_feedback(
        self, tool: str, arguments: dict[str, Any], result: str, after: Files
    ) -> tuple[str, Files]:
        now = self._make_situation("after_tool", tool, arguments, result)
        lines = [
            (guard.name, guard.message)
            for guard in self._guards_in_stage()
            if guard.decision == "feedback" and match_guard_groups(guard, now) is not None
        ]
        remark, after = self._hooks.after_tool(tool, arguments, result, after)
        lines += remark
        for name, _ in lines:
            self.remarks.append(f"guard {name} added to the result of {tool}")
        return "".join(f"\n\n[{name}] {text}" for name, text in lines), after

    def judge_reply(self, text: str) -> Guard | None:
        now = self._make_situation("reply", "", {}, text)
        self._try_experiments(now)
        denying = (g for g in self._guards_in_stage() if g.decision == "deny")
        return next(
            (guard for guard in denying if match_guard_groups(guard, now) is not None), None
        )

    @property
    def rewrite_note(self) -> str:
        """What was run instead of what the model sent; empty if no guard rewrote the call."""
        if not self.rewriters:
            return ""
        changes = "; ".join(
            f"{name} is {str(value)[:200]!r}" for name, value in self.rewritten_arguments.items()
        )
        return f"[{', '.join(self.rewriters)} rewrote the call: {changes}]"

    def report_outcome(self, outcome: VotingOutcome | None = None) -> GuardOutcome:
        report = GuardOutcome()
        if outcome and outcome.guard:
            report.guard = outcome.guard
            if outcome.hook:
                report.hook = True
            if outcome.denied:
                report.finding = shorten_to_start(redact(outcome.denied).strip(), MOST_CHARACTERS)
            if outcome.undecided:
                report.undecided = True
            metrics.add_refusal_metric(self.snapshot.config.labels, outcome.guard)
        if outcome and outcome.asks:
            report.asks = redact(outcome.asks)[:1000]
        # If another guard refuses, the call is sent again, and the bypass is for that call.
        if self.bypassed_guard and not (outcome and outcome.guard):
            report.bypassed_guard = self.bypassed_guard
        if self.trials:
            report.trials = self.trials
        if self.remarks:
            report.remarks = [redact(line)[:300] for line in self.remarks[:5]]
        return report

    def _guards_in_stage(self, stage: GuardStage = "active") -> list[Guard]:
        return [guard for guard in self.snapshot.config.rules if guard.stage == stage]

    def _try_experiments(self, now: GuardSituation) -> None:
        """Ask the guards on trial. Their votes are noted and block nothing."""
        self.trials += [
            guard.name
            for guard in self._guards_in_stage("experiment")
            if guard.decision in ("deny", "ask", "rewrite")
            and guard.name not in self.trials
            and match_guard_groups(guard, now) is not None
        ]

    def _settle_votes(self, voters: list[Voter], arguments: dict[str, Any]) -> VotingOutcome:
        # A bypass covers one refusal, not one at each point.
        bypass = () if self.bypassed_guard else self.bypass
        # No signal but the approval itself stands for a person's approval.
        bypass = [name for name in bypass if name != BY_CONFIGURATION]
        outcome = settle_votes(voters, arguments, approved=self.approved, bypass=bypass)
        if outcome.bypassed_guard:
            self.bypassed_guard = outcome.bypassed_guard
        return outcome

    def _may_be_permitted(
        self, tool: str, outcome: VotingOutcome, voters: list[Voter]
    ) -> VotingOutcome:
        """Ask hooks that may answer for a person, unless the configuration requires one."""
        if outcome.guard == BY_CONFIGURATION:
            return outcome
        for voter in self._hooks.voters("PermissionRequest", tool, reason=outcome.asks):
            vote = voter.ask(outcome.arguments)
            if vote.decision == "deny":
                return VotingOutcome(outcome.arguments, denied=vote.reason, guard=voter.name)
            if vote.decision in ("allow", "rewrite") and vote is not ALLOW:
                self.remarks.append(
                    f"hook {voter.name} permitted {tool}: {outcome.guard} had asked"
                )
                self.approved = True
                return self._settle_votes(voters, vote.arguments or outcome.arguments)
        return outcome

    def _approval_voters(self, tool: str) -> list[Voter]:
        """Return the agent's configuration as a voter if it asks a person about this tool."""
        if tool not in tools_routed_to_approval(self.snapshot.config):
            return []
        return [Voter(BY_CONFIGURATION, lambda _: Vote("ask", CONFIGURED))]

    def _guard_voter(
        self, guard: Guard, point: GuardPoint, tool: str, after: Files | None = None
    ) -> Voter:
        def cast_vote(arguments: dict[str, Any]) -> Vote:
            groups = match_guard_groups(
                guard, self._make_situation(point, tool, arguments, "", after)
            )
            if groups is None or guard.decision in ("allow", "feedback"):
                return ALLOW
            if guard.decision == "rewrite":
                return _vote_to_rewrite_call(guard, arguments, groups)
            return Vote("deny" if guard.decision == "deny" else "ask", guard.message)

        return Voter(guard.name, cast_vote)

    def _make_situation(
        self,
        point: GuardPoint,
        tool: str,
        arguments: dict[str, Any],
        text: str,
        after: Files | None = None,
    ) -> GuardSituation:
        remembers = any(guard.match.history for guard in self.snapshot.config.rules)
        now = activity_schedule_ms() if remembers else None
        return GuardSituation.from_snapshot(self.snapshot, point, tool, arguments, text, after, now)

    @cached_property
    def _hooks(self) -> Hooks:
        return Hooks(self.snapshot, self.root, activity_job_id(), self.remarks)


def _vote_to_rewrite_call(guard: Guard, arguments: dict[str, Any], groups: dict[str, str]) -> Vote:
    names = {**arguments, **groups}
    try:
        new = {name: render_guard_argument(value, names) for name, value in guard.rewrite.items()}
    except ConfigError as problem:
        return Vote("deny", f"The guard {guard.name} cannot rewrite the call: {problem}")
    rewritten = {**arguments, **new}
    return Vote("rewrite", guard.message, rewritten) if rewritten != arguments else ALLOW
