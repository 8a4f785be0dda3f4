"""Hooks as voters: the event they receive, and the vote in their answer."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from activities.checkpoints import Files, FilesError, Root, diff_files, update_projection
from activities.commands.private_folder import PrivateFolder, private_folder
from activities.guards.hooks.answers import HookAnswer, HookFailed, read_answer
from activities.guards.hooks.processes import run_hook
from activities.guards.voting import ALLOW, Vote, Voter
from activities.job.snapshot import Snapshot
from activities.redaction.credentials import encode_without_credentials, hide_credentials
from activities.redaction.secrets import redact
from activities.runtime.activity_info import activity_schedule_ms
from activities.toolkit.path_ownership import restore_owned_paths
from config.regexes import compile_cached_regex
from config.schema.agent import AgentConfig
from config.schema.guards import Hook, HookEvent
from protocol.short_text import first_few

MAX_NAMED = 5


def matching_hooks(config: AgentConfig, event: HookEvent, tool: str = "") -> list[Hook]:
    names = {tool, hook_tool_name(tool)}
    return [
        hook
        for hook in config.hooks.get(event, [])
        if not hook.matcher
        or not tool
        or any(compile_cached_regex(hook.matcher).fullmatch(name) for name in names)
    ]


@dataclass
class Hooks:
    snapshot: Snapshot
    root: Root
    job: str
    failed: list[str]
    _is_shown: bool = False

    def voters(self, event: HookEvent, tool: str = "", **fields: Any) -> list[Voter]:
        return [
            Voter(hook.title, self._vote_function(hook, event, tool, fields), costly=True)
            for hook in matching_hooks(self.snapshot.config, event, tool)
        ]

    def after_tool(
        self, tool: str, arguments: dict[str, Any], result: str, files: Files
    ) -> tuple[list[tuple[str, str]], Files]:
        """Run the hooks after a tool; return what each adds to the result, and the files as they
        leave them.

        Formatters are such hooks. The changes of a hook that fails are discarded.
        """
        additions = []
        for hook in matching_hooks(self.snapshot.config, "PostToolUse", tool):
            try:
                with private_folder(files, self.root, self.job) as private:
                    hook_input = hook_arguments(tool, arguments, str(private.path))
                    fields = {"tool_response": hook_tool_response(tool, hook_input, result)}
                    answer = self._ask_hook(
                        hook, "PostToolUse", tool, arguments, fields, folder=private.path
                    )
                    files_after = _read_voter_folder(private)
            except HookFailed as failed:
                if hook.fail == "closed":
                    text = redact(f"The hook failed, its check is not made: {failed}")
                    additions.append((hook.title, text))
                else:
                    self._pass_over(hook, failed)
                continue
            reason = answer.reason if answer.decision == "deny" else ""
            files_after, _ = restore_owned_paths(self.snapshot.state.phase.kind, files, files_after)
            changed = [change.path for change in diff_files(files, files_after)]
            parts = [reason, answer.context]
            if changed:
                parts.append(
                    f"It changed {first_few(changed, MAX_NAMED)}: read again before you edit."
                )
            if text := "\n".join(part for part in parts if part):
                additions.append((hook.title, redact(text)))
            files = files_after
        return additions, files

    def _pass_over(self, hook: Hook, why: HookFailed) -> None:
        self.failed.append(redact(f"hook {hook.title} failed and was passed over: {why}"))

    def _vote_function(
        self, hook: Hook, event: HookEvent, tool: str, fields: dict[str, Any]
    ) -> Callable[[dict[str, Any]], Vote]:
        def cast_vote(arguments: dict[str, Any]) -> Vote:
            try:
                answer = self._ask_hook(hook, event, tool, arguments, fields)
            except HookFailed as failed:
                if hook.fail == "closed":
                    why = redact(f"The hook {hook.title} failed: {failed}")
                    return Vote("deny", why, undecided=True)
                self._pass_over(hook, failed)
                return ALLOW
            return self._read_vote(answer, tool, arguments)

        return cast_vote

    @property
    def _workspace_folder(self) -> Path:
        return self.root.workspace(self.job)

    def _show_folder(self) -> Path:
        """Update the workspace folder, since hooks read files there."""
        if not self._is_shown:
            snapshot = self.snapshot
            update_projection(
                snapshot.checkpoints, self.root, self.job, snapshot.files, activity_schedule_ms()
            )
            self._is_shown = True
        return self._workspace_folder

    def _read_vote(self, answer: HookAnswer, tool: str, arguments: dict[str, Any]) -> Vote:
        rewritten = arguments_from_hook(
            tool, answer.updated, arguments, str(self._workspace_folder)
        )
        changed = rewritten if rewritten != arguments else {}
        if answer.decision in ("deny", "ask"):
            reason = answer.reason or "no reason was given"
            return Vote("deny" if answer.decision == "deny" else "ask", redact(reason), changed)
        if changed:
            return Vote("rewrite", answer.reason, changed)
        # An explicit permission outranks silence.
        return Vote("allow", answer.reason) if answer.decision == "allow" else ALLOW

    def _ask_hook(
        self,
        hook: Hook,
        event: HookEvent,
        tool: str,
        arguments: dict[str, Any],
        fields: dict[str, Any],
        folder: Path | None = None,
    ) -> HookAnswer:
        workspace = str(folder or self._show_folder())
        phase = self.snapshot.state.phase
        event_data: dict[str, Any] = {
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
            event_data |= {"tool": tool, "arguments": arguments}
            event_data["tool_name"] = hook_tool_name(tool)
            event_data["tool_input"] = hook_arguments(tool, arguments, workspace)
        ran = run_hook(
            hook.command,
            json.dumps(event_data | fields).encode(),
            folder=workspace,
            seconds=hook.timeout,
            variables=hook.environment,
        )
        return _without_credentials(read_answer(ran))


def _without_credentials(answer: HookAnswer) -> HookAnswer:
    """Hide what JSON had escaped. A hook that puts a credential into a call changes the call."""
    return replace(
        answer,
        reason=hide_credentials(answer.reason),
        context=hide_credentials(answer.context),
        updated=json.loads(encode_without_credentials(answer.updated)),
    )


def _read_voter_folder(private: PrivateFolder) -> Files:
    try:
        return private.read_back(hide_credentials=True)
    except FilesError as error:
        raise HookFailed(str(error)) from None


@dataclass(frozen=True)
class HookNames:
    """A tool's name in the protocol, and the names of arguments that differ there."""

    tool: str
    arguments: dict[str, str]


FILE = {"path": "file_path"}
NAMES = {
    "write_file": HookNames("Write", FILE),
    # Hooks on edits must see this tool as well, so it appears as an edit that replaces nothing.
    "append_file": HookNames("Edit", {**FILE, "content": "new_string"}),
    "edit_file": HookNames("Edit", {**FILE, "old": "old_string", "new": "new_string"}),
    "read_file": HookNames("Read", FILE),
    "run_command": HookNames("Bash", {}),
    "search_files": HookNames("Grep", {"query": "pattern"}),
    "list_files": HookNames("Glob", {}),
}


def hook_tool_name(tool: str) -> str:
    if tool in NAMES:
        return NAMES[tool].tool
    # A tool of an MCP server: none of ours has this in its name.
    return f"mcp__{tool}" if "__" in tool else tool


def hook_arguments(tool: str, arguments: dict[str, Any], workspace: str) -> dict[str, Any]:
    """Return the arguments under the protocol's names.

    Paths become absolute: scripts compare them with the project's folder, or search for `/src/`.
    """
    if tool not in NAMES:
        return dict(arguments)
    values = dict(arguments)
    if isinstance(path := values.get("path"), str):
        values["path"] = os.path.normpath(os.path.join(workspace, path))  # noqa: PTH118
    renamed = {NAMES[tool].arguments.get(name, name): value for name, value in values.items()}
    return {**renamed, "old_string": ""} if tool == "append_file" else renamed


def hook_tool_response(tool: str, hook_input: dict[str, Any], result: str) -> dict[str, Any]:
    """Return a tool's result with the fields that scripts of the protocol read."""
    if tool == "run_command":
        return {"text": result, "stdout": result, "stderr": ""}
    path = hook_input.get("file_path")
    return {"text": result, "filePath": path} if path else {"text": result}


def arguments_from_hook(
    tool: str, updated_input: dict[str, Any], arguments: dict[str, Any], workspace: str
) -> dict[str, Any]:
    """Return our arguments after `updatedInput`, which may use the protocol's names or ours."""
    names = {
        hook_name: tool_name
        for tool_name, hook_name in (NAMES[tool].arguments if tool in NAMES else {}).items()
    }
    sent = hook_arguments(tool, arguments, workspace)
    # Scripts return arguments that they do not mean to change.
    other = {
        name: value
        for name, value in updated_input.items()
        if name not in sent or sent[name] != value
    }
    updated = {names.get(name, name): value for name, value in other.items()}
    if tool == "append_file":
        updated.pop("old_string", None)
    if isinstance(path := updated.get("path"), str) and f"{path}/".startswith(f"{workspace}/"):
        updated["path"] = os.path.relpath(path, workspace)
    return {**arguments, **updated}
