"""The guards of one tool call, before and after it: where declared guards and hooks meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from activities.checkpoints import Files, Root
from activities.guards.hooks.voters import Hooks
from activities.guards.matching import Situation, concerns
from activities.guards.routes import asking
from activities.guards.voting import ALLOW, Outcome, Vote, Voter, settle
from activities.job.activity_context import job_id
from activities.job.snapshot import Snapshot
from activities.redaction.secrets import redact
from activities.runtime import metrics
from config.guard_files import render_argument
from config.schema.agent import Problem
from config.schema.guards import Guard, HookEvent, Point, Stage
from protocol.requests import GuardOutcome

BY_CONFIGURATION = "approve"
"""Who asks when the configuration does: no guard."""
CONFIGURED = "The agent's configuration asks for approval of each call of this tool."


@dataclass
class Guards:
    """What is asked of one call, and what was decided so far."""

    root: Root
    snapshot: Snapshot
    approved: bool = False
    bypass: Sequence[str] = ()
    remarks: list[str] = field(default_factory=list)
    """For people: what else than a refusal was decided."""
    trials: list[str] = field(default_factory=list)
    """Guards on trial that would have refused it."""
    bypassed: str = ""
    instead: dict[str, Any] = field(default_factory=dict)
    """Arguments that the call would be run with and did not come with."""
    rewritten: tuple[str, ...] = ()
    """Who put them there."""

    def before(self, tool: str, arguments: dict[str, Any], *points: Point) -> Outcome:
        """What comes of a call before it is run.

        Args:
            points: Further points than `before_tool` at which it stands, such as `phase_end`.
        """
        told = [
            self._voter(guard, point, tool)
            for point in ("before_tool", *points)
            for guard in self._rules()
            if guard.point == point and guard.match.changes is None
        ]
        voters = [*self._approval(tool), *told, *self._hooks.voters("PreToolUse", tool)]
        outcome = self._settle(voters, arguments)
        # Before a call was approved they had their say of it.
        for point in () if outcome.denied or self.approved else ("before_tool", *points):
            self._try(self._situation(point, tool, arguments, ""))
        if outcome.asks:
            outcome = self._may_be_permitted(tool, outcome, voters)
        would = outcome
        if outcome.asks:
            # A person approves what would then be run, and not what was sent.
            would = settle(voters, arguments, approved=True, bypass=self.bypass)
            if would.denied:
                # Nobody is asked about what is refused after all.
                outcome = would
        self.rewritten = would.rewritten
        self.instead = {
            name: value
            for name, value in would.arguments.items()
            if name not in arguments or arguments[name] != value
        }
        for name in outcome.rewritten:
            self.remarks.append(f"guard {name} rewrote the arguments of {tool}")
        return outcome

    def stop(self, *, active: bool, subagent: bool = False) -> Outcome:
        """What the hooks say of the job's end.

        Args:
            active: Whether one of them has kept the job from ending before.
            subagent: Whether the job works for a project: another event then.
        """
        event: HookEvent = "SubagentStop" if subagent else "Stop"
        return self._settle(self._hooks.voters(event, stop_hook_active=active), {})

    def also(self, voters: list[Voter]) -> Outcome:
        """What others say, who stand where guards do: may be bypassed like them."""
        return self._settle(voters, {})

    def change(self, tool: str, arguments: dict[str, Any], after: Files) -> Outcome:
        """Whether the call may change what it would change."""
        voters = [
            self._voter(guard, "before_tool", tool, after)
            for guard in self._rules()
            if guard.match.changes is not None
        ]
        outcome = self._settle(voters, arguments)
        if not outcome.denied:
            self._try(self._situation("before_tool", tool, arguments, "", after))
        return outcome

    def feedback(
        self, tool: str, arguments: dict[str, Any], result: str, after: Files
    ) -> tuple[str, Files]:
        """What is added to a result, and the files as hooks leave them."""
        now = self._situation("after_tool", tool, arguments, result)
        lines = [
            (guard.name, guard.message)
            for guard in self._rules()
            if guard.decision == "feedback" and concerns(guard, now) is not None
        ]
        said, after = self._hooks.after(tool, arguments, result, after)
        lines += said
        for name, _ in lines:
            self.remarks.append(f"guard {name} added to the result of {tool}")
        return "".join(f"\n\n[{name}] {text}" for name, text in lines), after

    def reply(self, text: str) -> Guard | None:
        """The guard that does not accept a reply."""
        now = self._situation("reply", "", {}, text)
        self._try(now)
        found = (g for g in self._rules() if g.decision == "deny")
        return next((guard for guard in found if concerns(guard, now) is not None), None)

    def report(self, outcome: Outcome | None = None) -> GuardOutcome:
        """What the workflow is told; only what there is to tell is set."""
        told = GuardOutcome()
        if outcome and outcome.guard:
            told.guard = outcome.guard
            if outcome.hook:
                told.hook = True
            if outcome.undecided:
                told.undecided = True
            metrics.refusal(self.snapshot.config.name, outcome.guard)
        if outcome and outcome.asks:
            told.asks = redact(outcome.asks)[:1000]
        # Refused by another after all, the call is to be made again: the bypass is for that one.
        if self.bypassed and not (outcome and outcome.guard):
            told.bypassed_guard = self.bypassed
        if self.trials:
            told.trials = self.trials
        if self.remarks:
            told.remarks = [redact(line)[:300] for line in self.remarks[:5]]
        return told

    def _rules(self, stage: Stage = "active") -> list[Guard]:
        return [guard for guard in self.snapshot.config.rules if guard.stage == stage]

    def _try(self, now: Situation) -> None:
        """Ask the guards on trial: what they say is noted, and blocks nothing."""
        self.trials += [
            guard.name
            for guard in self._rules("experiment")
            if guard.decision in ("deny", "ask", "rewrite")
            and guard.name not in self.trials
            and concerns(guard, now) is not None
        ]

    def _settle(self, voters: list[Voter], arguments: dict[str, Any]) -> Outcome:
        # One refusal is passed over, not one at each point.
        bypass = () if self.bypassed else self.bypass
        outcome = settle(voters, arguments, approved=self.approved, bypass=bypass)
        if outcome.bypassed:
            self.bypassed = outcome.bypassed
        return outcome

    def _may_be_permitted(self, tool: str, asked: Outcome, voters: list[Voter]) -> Outcome:
        """Ask the hooks that may answer in a person's place, but not in place of the person whom
        the configuration names.
        """
        if asked.guard == BY_CONFIGURATION:
            return asked
        for voter in self._hooks.voters("PermissionRequest", tool, reason=asked.asks):
            vote = voter.ask(asked.arguments)
            if vote.word == "deny":
                return Outcome(asked.arguments, denied=vote.reason, guard=voter.name)
            if vote.word in ("allow", "rewrite") and vote is not ALLOW:
                self.remarks.append(f"hook {voter.name} permitted {tool}: {asked.guard} had asked")
                self.approved = True
                return self._settle(voters, vote.arguments or asked.arguments)
        return asked

    def _approval(self, tool: str) -> list[Voter]:
        """The agent's configuration, if it asks a person about this tool."""
        if tool not in asking(self.snapshot.config):
            return []
        return [Voter(BY_CONFIGURATION, lambda _: Vote("ask", CONFIGURED))]

    def _voter(self, guard: Guard, point: Point, tool: str, after: Files | None = None) -> Voter:
        def ask(arguments: dict[str, Any]) -> Vote:
            groups = concerns(guard, self._situation(point, tool, arguments, "", after))
            if groups is None or guard.decision in ("allow", "feedback"):
                return ALLOW
            if guard.decision == "rewrite":
                return _rewritten(guard, arguments, groups)
            return Vote("deny" if guard.decision == "deny" else "ask", guard.message)

        return Voter(guard.name, ask)

    def _situation(
        self,
        point: Point,
        tool: str,
        arguments: dict[str, Any],
        text: str,
        after: Files | None = None,
    ) -> Situation:
        return Situation.from_snapshot(self.snapshot, point, tool, arguments, text, after)

    @cached_property
    def _hooks(self) -> Hooks:
        return Hooks(self.snapshot, self.root, job_id(), self.remarks)


def _rewritten(guard: Guard, arguments: dict[str, Any], groups: dict[str, str]) -> Vote:
    names = {**arguments, **groups}
    try:
        new = {name: render_argument(value, names) for name, value in guard.rewrite.items()}
    except Problem as problem:
        return Vote("deny", f"The guard {guard.name} cannot rewrite the call: {problem}")
    made = {**arguments, **new}
    return Vote("rewrite", guard.message, made) if made != arguments else ALLOW
