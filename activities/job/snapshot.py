"""A checkpoint opened: the whole of a job as one tree.

    config.json     the agent's configuration, pinned when the job started
    state.json      phase, todos, scope, counters (`protocol.state.JobState`)
    conversation/   messages of the running phase, ready to send; what their provider wants back
                    with them beside them in provider/
    files/          the workspace
    reads/          for each path read in this phase, the content as it was then
    changes/        for each changed path, the number of the step that last changed it

and, where there are any,

    context.json    what is cleared and summarised (`activities.job.context_view`)
    reasoning/      what the model returned of its reasoning, by step
    arguments/      those of calls that could not be read, as they came
    history/        the conversations of earlier phases, by number
    review/         the conversation of the last review of a completion
    judge/          what the judge said of phases, by step
    project.json    what a project handed over to this job (`protocol.handoffs.ProjectLink`)

Opening and saving cost what changed, not what is there: parts nobody touched keep their ids.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from activities.checkpoints import Checkpoints, Files, FilesError, PathRefused, diff
from activities.checkpoints.entries import with_entry
from activities.checkpoints.objects import EMPTY_TREE, Store
from activities.checkpoints.sharded_tree import FILE, FOLDER, Raw, build, entries
from activities.job.context_view import Compaction, View
from activities.job.conversation import Conversation, call_id
from activities.job.volatile_paths import without_volatile
from activities.redaction.credentials import look_out_for
from config.schema.agent import AgentConfig
from protocol.handoffs import ProjectLink
from protocol.state import JobState

_configs: dict[bytes, AgentConfig] = {}


def _config(store: Store, blob: bytes) -> AgentConfig:
    """The pinned configuration, read once for all jobs that share it."""
    if blob not in _configs:
        if len(_configs) > 256:
            _configs.clear()
        _configs[blob] = AgentConfig.model_validate_json(store.read(blob))
        look_out_for(_configs[blob].credentials)
    return _configs[blob]


def _compaction(store: Store, raw: Raw | None) -> Compaction:
    return Compaction.model_validate_json(store.read(raw.id)) if raw else Compaction()


def _link(store: Store, raw: Raw | None) -> ProjectLink | None:
    return ProjectLink.model_validate_json(store.read(raw.id)) if raw else None


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
    compaction: Compaction
    reasoning: Files
    history: Files
    review: Files
    judge: Files
    arguments: Files
    link: ProjectLink | None = None
    saved: Callable[[str], None] | None = None
    """Told of each commit that is saved."""

    @classmethod
    def start(cls, checkpoints: Checkpoints, config: AgentConfig, state: JobState) -> Snapshot:
        """The content of a job before its first checkpoint."""
        empty = Files.empty(checkpoints.store)
        snapshot = cls(
            checkpoints,
            commit="",
            config=config,
            config_id="",
            state=state,
            conversation=Conversation(empty),
            files=empty,
            reads=empty,
            changes=empty,
            compaction=Compaction(),
            reasoning=empty,
            history=empty,
            review=empty,
            judge=empty,
            arguments=empty,
        )
        snapshot.pin(config)
        return snapshot

    @classmethod
    def load(cls, checkpoints: Checkpoints, commit: str) -> Snapshot:
        """Open a checkpoint.

        Raises:
            CheckpointMissing: the commit, or a part of it, is not in this store.
        """
        store = checkpoints.store
        parts = entries(store, bytes.fromhex(checkpoints.tree_of(commit)))

        def files(name: bytes) -> Files:
            part = parts.get(name)
            return checkpoints.files((part.id if part else EMPTY_TREE).hex())

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
            _compaction(store, parts.get(b"context.json")),
            files(b"reasoning"),
            files(b"history"),
            files(b"review"),
            files(b"judge"),
            files(b"arguments"),
            _link(store, parts.get(b"project.json")),
        )

    def save(self, message: str, at: int) -> str:
        """Write the tree and its commit; the id is a function of content, parent and date."""
        parents = [self.commit] if self.commit else []
        tree = self._tree(
            self.files, self.reads, self.changes, self.conversation.files, self.review
        )
        self.commit = self.checkpoints.commit(tree.hex(), parents, message, at)
        if self.saved:
            self.saved(self.commit)
        return self.commit

    @property
    def compared(self) -> str:
        """Hex id of the tree without what a provider alone decides, such as its ids, and without
        volatile paths: equal for two runs of the same steps.

        Where there is nothing of either it is the checkpoint's own tree.
        """
        patterns = self.config.shell.volatile
        return self._tree(
            without_volatile(self.files, patterns),
            without_volatile(self.reads, patterns),
            without_volatile(self.changes, patterns),
            self.conversation.without_provider_data,
            Conversation(self.review).without_provider_data,
        ).hex()

    def _tree(
        self, workspace: Files, reads: Files, changes: Files, conversation: Files, review: Files
    ) -> bytes:
        """The whole of the job, with these in place of its own."""
        store = self.checkpoints.store
        state = store.write_blob(self.state.model_dump_json(exclude_defaults=True).encode())
        folders = {
            b"conversation": conversation,
            b"files": workspace,
            b"reads": reads,
            b"changes": changes,
        }
        extra = {
            b"reasoning": self.reasoning,
            b"history": self.history,
            b"review": review,
            b"judge": self.judge,
            b"arguments": self.arguments,
        }
        empty = EMPTY_TREE.hex()
        folders |= {name: part for name, part in extra.items() if part.id != empty}
        parts = {name: Raw(FOLDER, bytes.fromhex(part.id)) for name, part in folders.items()}
        parts[b"config.json"] = Raw(FILE, bytes.fromhex(self.config_id))
        parts[b"state.json"] = Raw(FILE, state)
        if self.compaction != Compaction():
            context = self.compaction.model_dump_json().encode()
            parts[b"context.json"] = Raw(FILE, store.write_blob(context))
        if self.link:
            link = self.link.model_dump_json(exclude_defaults=True).encode()
            parts[b"project.json"] = Raw(FILE, store.write_blob(link))
        return build(store, parts)

    @property
    def view(self) -> View:
        """The conversation as the model sees it."""
        return View(self.conversation, self.compaction)

    def pin(self, config: AgentConfig) -> None:
        """Fix the configuration from here on."""
        look_out_for(config.credentials)
        self.config = config
        self.config_id = self.checkpoints.store.write_blob(config.model_dump_json().encode()).hex()

    def begin_conversation(self, *messages: dict[str, Any]) -> None:
        """Start afresh: nothing of the old conversation, and nothing counts as read."""
        empty = Files.empty(self.checkpoints.store)
        self.conversation = Conversation(empty).append(*messages)
        self.compaction = Compaction()
        self.reads = self.arguments = empty

    def shelve_conversation(self, number: int) -> None:
        """Keep the conversation of the phase of that number where `search_history` looks."""
        raw = Raw(FOLDER, bytes.fromhex(self.conversation.without_provider_data.id))
        self.history = self.history.with_raw((f"{number:04d}",), raw)

    def keep_reasoning(self, text: str) -> None:
        """Keep what the model returned of its reasoning at this step, for the record."""
        raw = Raw(FILE, self.checkpoints.store.write_blob(text.encode()))
        self.reasoning = self.reasoning.with_raw((f"{self.state.step:06d}.md",), raw)

    def keep_arguments(self, index: int, arguments: str) -> None:
        """Keep the arguments of a call that the conversation cannot hold."""
        raw = Raw(FILE, self.checkpoints.store.write_blob(arguments.encode()))
        self.arguments = self.arguments.with_raw((call_id(self.state.step, index),), raw)

    def keep_judgement(self, text: str) -> None:
        """Keep what the judge said at this step, for the record."""
        raw = Raw(FILE, self.checkpoints.store.write_blob(text.encode()))
        self.judge = self.judge.with_raw((f"{self.state.step:06d}.md",), raw)

    def changed_since(self, step: int) -> list[str]:
        """Paths changed after that step, those changed last at the end."""
        found = []
        for entry in self.changes.walk():
            changed = int(self.changes.content(entry)) if entry.kind == "file" else 0
            if changed > step:
                found.append((changed, entry.path))
        return [path for _, path in sorted(found)]

    def bytes(self, path: str) -> bytes | None:
        """Content of a workspace file, None if there is none."""
        # A person or a command may have left a folder there, or a link that leads nowhere.
        with suppress(FilesError, PathRefused):
            return self.files.read(path)
        return None

    def text(self, path: str) -> str:
        """A workspace file as text, empty if there is none."""
        return (self.bytes(path) or b"").decode(errors="replace")

    def place(self, path: str, data: builtins.bytes) -> None:
        """Write a workspace file of the system's, whatever is in the way."""
        raw = Raw(FILE, self.checkpoints.store.write_blob(data))
        self.files = with_entry(self.files, path, raw)

    def note_changes(self, before: Files) -> list[str]:
        """Record which paths differ from `before` as changed in this step; returns them."""
        changes = list(diff(before, self.files))
        come = [one.path for one in changes if one.new and one.new.kind != "folder"]
        # What went first, since a file may stand now where the folder of others was.
        for path in {one.path for one in changes}.difference(come):
            self.changes = with_entry(self.changes, path, None)
        for path in come:
            step = self.checkpoints.store.write_blob(str(self.state.step).encode())
            self.changes = with_entry(self.changes, path, Raw(FILE, step))
        return [one.path for one in changes]

    def story(self, what: str) -> str:
        """The commit message of a step: `phase 2 · todo 3 · write_file notes/a.md`."""
        phase = self.state.phase
        todo = f" · todo {phase.current.id}" if phase.current else ""
        return f"phase {phase.number}{todo} · {what}"

    def call(self, index: int) -> dict[str, Any]:
        """The `index`-th tool call of the newest reply."""
        call = self.conversation.calls(self.state.step)[index]
        if raw := self.arguments.raw((call_id(self.state.step, index),)):
            call["function"]["arguments"] = self.checkpoints.store.read(raw.id).decode()
        return call

    def argument(self, index: int, name: str) -> str:
        """One text argument of a call of the newest reply; empty when it is not there."""
        try:
            arguments = json.loads(self.call(index)["function"]["arguments"])
        except (ValueError, RecursionError):
            return ""
        value = arguments.get(name) if isinstance(arguments, dict) else None
        return value if isinstance(value, str) else ""
