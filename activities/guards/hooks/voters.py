"""Hooks as voters: the event they are told, and what their answer amounts to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities.checkpoints import Files, FilesError, Root, diff, project
from activities.commands.private import PrivateFolder, private_folder
from activities.guards.hooks.answers import Answer, HookFailed, read_answer
from activities.guards.hooks.names import (
    arguments_here,
    arguments_there,
    response_there,
    tool_there,
)
from activities.guards.hooks.processes import run
from activities.guards.voting import ALLOW, Vote, Voter
from activities.job.activity_context import order
from activities.job.snapshot import Snapshot
from activities.redaction.secrets import redact
from activities.toolkit.ownership import without_owned
from config.patterns import compiled
from config.schema.agent import AgentConfig
from config.schema.guards import Hook, HookEvent
from protocol.text import first_few

MOST_NAMED = 5
"""Paths that a result names of those that a hook changed."""


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


@dataclass
class Hooks:
    """The hooks of a job at one step."""

    snapshot: Snapshot
    root: Root
    job: str
    failed: list[str]
    """What was let pass although its hook failed, for people."""
    _shown: bool = False

    def voters(self, event: HookEvent, tool: str = "", **told: Any) -> list[Voter]:
        """The hooks of an event, each as a voter on the tool's arguments."""
        return [
            Voter(hook.title, self._asking(hook, event, tool, told), costly=True)
            for hook in matching(self.snapshot.config, event, tool)
        ]

    def after(
        self, tool: str, arguments: dict[str, Any], result: str, files: Files
    ) -> tuple[list[tuple[str, str]], Files]:
        """What the hooks after a tool add to its result, each with its name, and what they make of
        the files: formatters are hooks. What one leaves that fails is not kept.
        """
        found = []
        for hook in matching(self.snapshot.config, "PostToolUse", tool):
            try:
                with private_folder(files, self.root, self.job) as private:
                    there = arguments_there(tool, arguments, str(private.path))
                    told = {"tool_response": response_there(tool, there, result)}
                    answer = self._ask(
                        hook, "PostToolUse", tool, arguments, told, folder=private.path
                    )
                    left = _read_back(private)
            except HookFailed as failed:
                if hook.fail == "closed":
                    text = redact(f"The hook failed, its check is not made: {failed}")
                    found.append((hook.title, text))
                else:
                    self._pass_over(hook, failed)
                continue
            said = answer.reason if answer.word == "deny" else ""
            left, _ = without_owned(self.snapshot.state.phase.kind, files, left)
            changed = [change.path for change in diff(files, left)]
            parts = [said, answer.context, _changed(changed)]
            if text := "\n".join(part for part in parts if part):
                found.append((hook.title, redact(text)))
            files = left
        return found, files

    def _pass_over(self, hook: Hook, why: HookFailed) -> None:
        self.failed.append(redact(f"hook {hook.title} failed and was passed over: {why}"))

    def _asking(
        self, hook: Hook, event: HookEvent, tool: str, told: dict[str, Any]
    ) -> Callable[[dict[str, Any]], Vote]:
        def ask(arguments: dict[str, Any]) -> Vote:
            try:
                answer = self._ask(hook, event, tool, arguments, told)
            except HookFailed as failed:
                if hook.fail == "closed":
                    why = redact(f"The hook {hook.title} failed: {failed}")
                    return Vote("deny", why, undecided=True)
                self._pass_over(hook, failed)
                return ALLOW
            return self._vote(answer, tool, arguments)

        return ask

    @property
    def _folder(self) -> Path:
        return self.root.workspace(self.job)

    def _show(self) -> Path:
        """The folder people look at, brought up to date: hooks look at files in it."""
        if not self._shown:
            held = self.snapshot
            project(held.checkpoints, self.root, self.job, held.files, order())
            self._shown = True
        return self._folder

    def _vote(self, answer: Answer, tool: str, arguments: dict[str, Any]) -> Vote:
        made = arguments_here(tool, answer.updated, arguments, str(self._folder))
        changed = made if made != arguments else {}
        if answer.word in ("deny", "ask"):
            reason = answer.reason or "no reason was given"
            return Vote("deny" if answer.word == "deny" else "ask", redact(reason), changed)
        if changed:
            return Vote("rewrite", answer.reason, changed)
        # Who permits in so many words is told apart from who says nothing.
        return Vote("allow", answer.reason) if answer.word == "allow" else ALLOW

    def _ask(
        self,
        hook: Hook,
        event: HookEvent,
        tool: str,
        arguments: dict[str, Any],
        told: dict[str, Any],
        folder: Path | None = None,
    ) -> Answer:
        workspace = str(folder or self._show())
        phase = self.snapshot.state.phase
        said: dict[str, Any] = {
            "session_id": self.job,
            "transcript_path": "",
            "cwd": workspace,
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
            said["tool_input"] = arguments_there(tool, arguments, workspace)
        ran = run(
            hook.command,
            json.dumps(said | told).encode(),
            folder=workspace,
            seconds=hook.timeout,
            variables=hook.environment,
        )
        return read_answer(ran)


def _read_back(private: PrivateFolder) -> Files:
    try:
        return private.read_back()
    except FilesError as error:
        raise HookFailed(str(error)) from None


def _changed(paths: list[str]) -> str:
    return (
        f"It changed {first_few(paths, MOST_NAMED)}: read again before you edit." if paths else ""
    )
