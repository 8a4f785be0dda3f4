"""A checkpoint opened: the whole of a job as one tree.

    config.json     the agent's configuration, pinned when the job started
    state.json      phase, todos, scope, counters (`protocol.state.JobState`)
    conversation/   messages of the running phase, ready to send
    files/          the workspace
    reads/          for each path read in this phase, the content as it was then
    changes/        for each changed path, the number of the step that last changed it

Opening and saving cost what changed, not what is there: parts nobody touched keep their ids.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from activities.checkpoints import Checkpoints, Files, diff
from activities.checkpoints.folders import FILE, FOLDER, Raw, build, entries
from activities.checkpoints.objects import Store
from activities.conversation import Conversation
from config.schema import AgentConfig
from protocol.state import JobState

_configs: dict[bytes, AgentConfig] = {}


def _config(store: Store, blob: bytes) -> AgentConfig:
    """The pinned configuration, read once for all jobs that share it."""
    if blob not in _configs:
        if len(_configs) > 256:
            _configs.clear()
        _configs[blob] = AgentConfig.model_validate_json(store.read(blob))
    return _configs[blob]


def with_entry(files: Files, path: str, raw: Raw | None) -> Files:
    """`files` with (or, for None, without) that entry; whatever is in its way goes.

    For `reads` and `changes`, which follow the workspace late: where it has a folder now, they may
    still hold the file that was there before, or the other way round. By parts, since names that
    a person or a command gave may break the rules for tools.
    """
    parts = tuple(path.split("/"))
    for depth in range(1, len(parts)):
        present = files.raw(parts[:depth])
        if present is not None and present.mode != FOLDER:
            files = files.with_raw(parts[:depth], None)
            break
    if raw is None and files.raw(parts) is None:
        return files
    return files.with_raw(parts, raw)


@dataclass
class Snapshot:
    """One checkpoint's content. Change it by assigning new values, then `save`."""

    checkpoints: Checkpoints
    commit: str
    config: AgentConfig
    config_id: str
    """Blob id of the pinned configuration: what depends on it alone may be cached by it."""
    state: JobState
    conversation: Conversation
    files: Files
    reads: Files
    changes: Files

    @classmethod
    def start(cls, checkpoints: Checkpoints, config: AgentConfig, state: JobState) -> Snapshot:
        """The content of a job before its first checkpoint."""
        empty = Files.empty(checkpoints.store)
        config_id = checkpoints.store.write_blob(config.model_dump_json().encode()).hex()
        conversation = Conversation(empty)
        return cls(checkpoints, "", config, config_id, state, conversation, empty, empty, empty)

    @classmethod
    def load(cls, checkpoints: Checkpoints, commit: str) -> Snapshot:
        """Open a checkpoint.

        Raises:
            CheckpointMissing: the commit, or a part of it, is not in this store.
        """
        store = checkpoints.store
        parts = entries(store, bytes.fromhex(checkpoints.tree_of(commit)))

        def files(name: bytes) -> Files:
            return checkpoints.files(parts[name].id.hex())

        config = _config(store, parts[b"config.json"].id)
        state = JobState.model_validate_json(store.read(parts[b"state.json"].id))
        return cls(
            checkpoints,
            commit,
            config,
            parts[b"config.json"].id.hex(),
            state,
            Conversation(files(b"conversation")),
            checkpoints.files(parts[b"files"].id.hex(), limit=config.limits.file_bytes),
            files(b"reads"),
            files(b"changes"),
        )

    def save(self, message: str, at: int) -> str:
        """Write the tree and its commit; the id is a function of content, parent and date."""
        store = self.checkpoints.store
        state = store.write_blob(self.state.model_dump_json(exclude_defaults=True).encode())
        folders = {
            b"conversation": self.conversation.files,
            b"files": self.files,
            b"reads": self.reads,
            b"changes": self.changes,
        }
        tree = build(
            store,
            {
                b"config.json": Raw(FILE, bytes.fromhex(self.config_id)),
                b"state.json": Raw(FILE, state),
                **{name: Raw(FOLDER, bytes.fromhex(part.id)) for name, part in folders.items()},
            },
        )
        parents = [self.commit] if self.commit else []
        self.commit = self.checkpoints.commit(tree.hex(), parents, message, at)
        return self.commit

    def begin_conversation(self, *messages: dict[str, Any]) -> None:
        """Start afresh: nothing of the old conversation, and nothing counts as read."""
        empty = Files.empty(self.checkpoints.store)
        self.conversation = Conversation(empty).append(*messages)
        self.reads = empty

    def bytes(self, path: str) -> bytes | None:
        """Content of a workspace file, None if there is none."""
        entry = self.files.entry(path)
        return None if entry is None or entry.kind == "folder" else self.files.read(path)

    def text(self, path: str) -> str:
        """A workspace file as text, empty if there is none."""
        return (self.bytes(path) or b"").decode(errors="replace")

    def note_changes(self, before: Files) -> list[str]:
        """Record which paths differ from `before` as changed in this step; returns them."""
        changed = []
        for change in diff(before, self.files):
            changed.append(change.path)
            if change.new is None or change.new.kind == "folder":
                self.changes = with_entry(self.changes, change.path, None)
            else:
                step = self.checkpoints.store.write_blob(str(self.state.step).encode())
                self.changes = with_entry(self.changes, change.path, Raw(FILE, step))
        return changed

    def story(self, what: str) -> str:
        """The commit message of a step: `phase 2 · todo 3 · write_file notes/a.md`."""
        phase = self.state.phase
        todo = f" · todo {phase.current.id}" if phase.current else ""
        return f"phase {phase.number}{todo} · {what}"

    def call(self, index: int) -> dict[str, Any]:
        """The `index`-th tool call of the newest reply."""
        return self.conversation.calls(self.state.step)[index]

    def argument(self, index: int, name: str) -> str:
        """One text argument of a call of the newest reply; empty when it is not there."""
        try:
            arguments = json.loads(self.call(index)["function"]["arguments"])
        except ValueError:
            return ""
        value = arguments.get(name) if isinstance(arguments, dict) else None
        return value if isinstance(value, str) else ""
