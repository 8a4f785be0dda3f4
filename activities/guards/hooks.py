"""Hooks as judges: the event they are told, and what their answer amounts to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from activities.guards.answers import Answer, HookFailed, read_answer
from activities.guards.judging import ALLOW, Judge, Opinion
from activities.guards.names import arguments_here, arguments_there, tool_there
from activities.guards.processes import run
from activities.guards.secrets import redact
from activities.job.snapshot import Snapshot
from config.guard_schema import Hook, HookEvent, compiled
from config.schema import AgentConfig


def matching(config: AgentConfig, event: HookEvent, tool: str = "") -> list[Hook]:
    """The hooks that are asked at this event."""
    names = {tool, tool_there(tool)}
    return [
        hook
        for hook in config.hooks.get(event, [])
        if not hook.matcher
        or not tool
        or any(compiled(hook.matcher).fullmatch(name) for name in names)
    ]


@dataclass(frozen=True)
class Hooks:
    """The hooks of a job at one step."""

    snapshot: Snapshot
    job: str
    folder: str
    show: Callable[[], None]
    """Brings the folder up to date; hooks look at files in it."""
    failed: list[str]
    """What was let pass although its hook failed, for people."""

    def judges(self, event: HookEvent, tool: str = "", **told: Any) -> list[Judge]:
        """The hooks of an event, each as a judge of the tool's arguments."""
        return [
            Judge(hook.title, self._judge(hook, event, tool, told), costly=True)
            for hook in matching(self.snapshot.config, event, tool)
        ]

    def remarks(self, tool: str, arguments: dict[str, Any], result: str) -> list[tuple[str, str]]:
        """What the hooks after a tool have to add to its result, each with its name."""
        found = []
        for hook in matching(self.snapshot.config, "PostToolUse", tool):
            told = {"tool_response": {"text": result}}
            try:
                answer = self._ask(hook, "PostToolUse", tool, arguments, told)
            except HookFailed as failed:
                if hook.fail == "closed":
                    text = redact(f"The hook failed, its check is not made: {failed}")
                    found.append((hook.title, text))
                else:
                    self._pass_over(hook, failed)
                continue
            said = answer.reason if answer.word == "deny" else ""
            if text := "\n".join(part for part in (said, answer.context) if part):
                found.append((hook.title, redact(text)))
        return found

    def _pass_over(self, hook: Hook, why: HookFailed) -> None:
        self.failed.append(redact(f"hook {hook.title} failed and was passed over: {why}"))

    def _judge(
        self, hook: Hook, event: HookEvent, tool: str, told: dict[str, Any]
    ) -> Callable[[dict[str, Any]], Opinion]:
        def judge(arguments: dict[str, Any]) -> Opinion:
            try:
                answer = self._ask(hook, event, tool, arguments, told)
            except HookFailed as failed:
                if hook.fail == "closed":
                    return Opinion("deny", redact(f"The hook {hook.title} failed: {failed}"))
                self._pass_over(hook, failed)
                return ALLOW
            return self._opinion(answer, tool, arguments)

        return judge

    def _opinion(self, answer: Answer, tool: str, arguments: dict[str, Any]) -> Opinion:
        made = arguments_here(tool, answer.updated, arguments, self.folder)
        changed = made if made != arguments else {}
        if answer.word in ("deny", "ask"):
            reason = answer.reason or "no reason was given"
            return Opinion("deny" if answer.word == "deny" else "ask", redact(reason), changed)
        if changed:
            return Opinion("rewrite", answer.reason, changed)
        # Who permits in so many words is told apart from who says nothing.
        return Opinion("allow", answer.reason) if answer.word == "allow" else ALLOW

    def _ask(
        self,
        hook: Hook,
        event: HookEvent,
        tool: str,
        arguments: dict[str, Any],
        told: dict[str, Any],
    ) -> Answer:
        self.show()
        phase = self.snapshot.state.phase
        said: dict[str, Any] = {
            "session_id": self.job,
            "transcript_path": "",
            "cwd": self.folder,
            "permission_mode": "default",
            "hook_event_name": event,
            "agent": {
                "name": self.snapshot.config.name,
                "phase": phase.number,
                "kind": phase.kind,
                "todo": phase.current.content if phase.current else None,
            },
        }
        if tool:
            said |= {"tool": tool, "arguments": arguments}
            said["tool_name"] = tool_there(tool)
            said["tool_input"] = arguments_there(tool, arguments)
        ran = run(
            hook.command,
            json.dumps(said | told).encode(),
            folder=self.folder,
            seconds=hook.timeout,
            variables=hook.environment,
        )
        return read_answer(ran)
