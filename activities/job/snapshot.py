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
    images/         what the model was shown of images in this phase, by hash
    helpers/        the conversations of helpers that `delegate` had read, by step and call
    project.json    what a project handed over to this job (`protocol.handoffs.ProjectLink`)
    repository.json what the job has of a repository (`protocol.repository.RepositoryLink`)

Opening and saving cost what changed, not what is there: parts nobody touched keep their ids.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities.checkpoints import Checkpoints, Files, FilesError, PathRefused, diff_files
from activities.checkpoints.alternates import lend_objects
from activities.checkpoints.entries import with_entry
from activities.checkpoints.objects import EMPTY_TREE, ObjectStore
from activities.checkpoints.sharded_tree import FILE, FOLDER, TreeEntry, build_tree, list_entries
from activities.job.context_view import Compaction, ContextView
from activities.job.conversation import Conversation, call_id, count_results
from activities.job.volatile_paths import without_volatile
from activities.redaction.credentials import register_variables
from config.schema.agent import AgentConfig
from protocol.handoffs import ProjectLink
from protocol.repository import RepositoryLink
from protocol.state import JobState, ShownImage

_configs: dict[bytes, AgentConfig] = {}


def _load_config(store: ObjectStore, blob: bytes) -> AgentConfig:
    """The pinned configuration, read once for all jobs that share it."""
    if blob not in _configs:
        if len(_configs) > 256:
            _configs.clear()
        _configs[blob] = AgentConfig.model_validate_json(store.read(blob))
        register_variables(_configs[blob].credential_variables)
    return _configs[blob]


def _load_compaction(store: ObjectStore, raw: TreeEntry | None) -> Compaction:
    return Compaction.model_validate_json(store.read(raw.id)) if raw else Compaction()


def _repository(store: ObjectStore, raw: TreeEntry | None) -> RepositoryLink | None:
    if raw is None:
        return None
    link = RepositoryLink.model_validate_json(store.read(raw.id))
    register_variables(link.token_variables)
    return link


def _load_link(store: ObjectStore, raw: TreeEntry | None) -> ProjectLink | None:
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
    helpers: Files
    images: Files
    link: ProjectLink | None = None
    repository: RepositoryLink | None = None
    on_save: Callable[[str], None] | None = None
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
            helpers=empty,
            images=empty,
        )
        snapshot.pin_config(config)
        return snapshot

    @classmethod
    def load(cls, checkpoints: Checkpoints, commit: str) -> Snapshot:
        """Open a checkpoint.

        Raises:
            CheckpointMissing: the commit, or a part of it, is not in this store.
        """
        store = checkpoints.store
        parts = list_entries(store, bytes.fromhex(checkpoints.tree_id(commit)))

        def part_files(name: bytes) -> Files:
            part = parts.get(name)
            return checkpoints.files((part.id if part else EMPTY_TREE).hex())

        config = _load_config(store, parts[b"config.json"].id)
        state = JobState.model_validate_json(store.read(parts[b"state.json"].id))
        return cls(
            checkpoints,
            commit,
            config,
            parts[b"config.json"].id.hex(),
            state,
            Conversation(part_files(b"conversation")),
            checkpoints.files(parts[b"files"].id.hex(), limit=config.limits.file_bytes),
            part_files(b"reads"),
            part_files(b"changes"),
            _load_compaction(store, parts.get(b"context.json")),
            part_files(b"reasoning"),
            part_files(b"history"),
            part_files(b"review"),
            part_files(b"judge"),
            part_files(b"arguments"),
            part_files(b"helpers"),
            part_files(b"images"),
            _load_link(store, parts.get(b"project.json")),
            _repository(store, parts.get(b"repository.json")),
        )

    def save(self, message: str, timestamp: int) -> str:
        """Write the tree and its commit; the id is a function of content, parent and date."""
        parents = [self.commit] if self.commit else []
        tree = self._write_tree(
            self.files, self.reads, self.changes, self.conversation.files, self.review
        )
        self.commit = self.checkpoints.commit(tree.hex(), parents, message, timestamp)
        if self.on_save:
            self.on_save(self.commit)
        return self.commit

    def borrow_objects(self, repository: Path) -> None:
        """Read the contents of a repository's files where they are, without a copy."""
        lend_objects(repository, self.checkpoints.path)
        self.checkpoints.store.flush()
        self.checkpoints.store.reload()

    @property
    def comparable_tree(self) -> str:
        """Hex id of the tree without what a provider alone decides, such as its ids, and without
        volatile paths: equal for two runs of the same steps.

        Where there is nothing of either it is the checkpoint's own tree.
        """
        patterns = self.config.shell.volatile
        return self._write_tree(
            without_volatile(self.files, patterns),
            without_volatile(self.reads, patterns),
            without_volatile(self.changes, patterns),
            self.conversation.without_provider_data,
            Conversation(self.review).without_provider_data,
        ).hex()

    def _write_tree(
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
            b"helpers": self.helpers,
            b"images": self.images,
        }
        empty = EMPTY_TREE.hex()
        folders |= {name: part for name, part in extra.items() if part.id != empty}
        parts = {name: TreeEntry(FOLDER, bytes.fromhex(part.id)) for name, part in folders.items()}
        parts[b"config.json"] = TreeEntry(FILE, bytes.fromhex(self.config_id))
        parts[b"state.json"] = TreeEntry(FILE, state)
        if self.compaction != Compaction():
            context = self.compaction.model_dump_json().encode()
            parts[b"context.json"] = TreeEntry(FILE, store.write_blob(context))
        if self.link:
            link = self.link.model_dump_json(exclude_defaults=True).encode()
            parts[b"project.json"] = TreeEntry(FILE, store.write_blob(link))
        if self.repository:
            repository = self.repository.model_dump_json(exclude_defaults=True).encode()
            parts[b"repository.json"] = TreeEntry(FILE, store.write_blob(repository))
        return build_tree(store, parts)

    @property
    def view(self) -> ContextView:
        """The conversation as the model sees it."""
        return ContextView(self.conversation, self.compaction)

    def pin_config(self, config: AgentConfig) -> None:
        """Fix the configuration from here on."""
        register_variables(config.credential_variables)
        self.config = config
        self.config_id = self.checkpoints.store.write_blob(config.model_dump_json().encode()).hex()

    def begin_conversation(self, *messages: dict[str, Any]) -> None:
        """Start afresh: nothing of the old conversation, and nothing counts as read."""
        empty = Files.empty(self.checkpoints.store)
        self.conversation = Conversation(empty).append(*messages)
        self.compaction = Compaction()
        self.reads = self.arguments = self.images = empty

    def shelve_conversation(self, number: int) -> None:
        """Keep the conversation of the phase of that number where `search_history` looks."""
        raw = TreeEntry(FOLDER, bytes.fromhex(self.conversation.without_provider_data.id))
        self.history = self.history.with_tree_entry((f"{number:04d}",), raw)

    def keep_reasoning(self, text: str) -> None:
        """Keep what the model returned of its reasoning at this step, for the record."""
        raw = TreeEntry(FILE, self.checkpoints.store.write_blob(text.encode()))
        self.reasoning = self.reasoning.with_tree_entry((f"{self.state.step:06d}.md",), raw)

    def keep_arguments(self, index: int, arguments: str) -> None:
        """Keep the arguments of a call that the conversation cannot hold."""
        raw = TreeEntry(FILE, self.checkpoints.store.write_blob(arguments.encode()))
        self.arguments = self.arguments.with_tree_entry((call_id(self.state.step, index),), raw)

    def keep_helper(self, index: int, conversation: Conversation) -> None:
        """Keep a helper's conversation, for the record."""
        raw = TreeEntry(FOLDER, bytes.fromhex(conversation.without_provider_data.id))
        self.helpers = self.helpers.with_tree_entry((call_id(self.state.step, index),), raw)

    def keep_image(self, data: builtins.bytes, mime: str, pointer: str, tokens: int) -> None:
        """Keep what a result shows, for the message that follows the results of its reply."""
        raw = TreeEntry(FILE, self.checkpoints.store.write_blob(data))
        shown = ShownImage(pointer=pointer, blob=raw.id.hex(), mime=mime, tokens=tokens)
        self.images = self.images.with_tree_entry((shown.blob,), raw)
        self.state.images = [*self.state.images, shown]

    def append_images(self) -> None:
        """Show what results of the newest reply hold, once all its calls have their results.

        Results are text: over Chat Completions nothing else can be in them.
        """
        if self.state.images and count_results(self.conversation) == len(
            self.conversation.tool_calls(self.state.step)
        ):
            self.conversation = self.conversation.append_images(self.state.images)
            self.state.images = []

    def keep_judgement(self, text: str) -> None:
        """Keep what the judge said at this step, for the record."""
        raw = TreeEntry(FILE, self.checkpoints.store.write_blob(text.encode()))
        self.judge = self.judge.with_tree_entry((f"{self.state.step:06d}.md",), raw)

    def changed_since(self, step: int) -> list[str]:
        """Paths changed after that step, those changed last at the end."""
        changed_paths = []
        for entry in self.changes.walk():
            changed = int(self.changes.read_entry(entry)) if entry.kind == "file" else 0
            if changed > step:
                changed_paths.append((changed, entry.path))
        return [path for _, path in sorted(changed_paths)]

    def read_bytes(self, path: str) -> bytes | None:
        """Content of a workspace file, None if there is none."""
        # A person or a command may have left a folder there, or a link that leads nowhere.
        with suppress(FilesError, PathRefused):
            return self.files.read(path)
        return None

    def read_text(self, path: str) -> str:
        """A workspace file as text, empty if there is none."""
        return (self.read_bytes(path) or b"").decode(errors="replace")

    def write_system_file(self, path: str, data: builtins.bytes) -> None:
        """Write a workspace file of the system's, whatever is in the way."""
        raw = TreeEntry(FILE, self.checkpoints.store.write_blob(data))
        self.files = with_entry(self.files, path, raw)

    def record_changes(self, before: Files) -> list[str]:
        """Record which paths differ from `before` as changed in this step; returns them."""
        changes = list(diff_files(before, self.files))
        present = [change.path for change in changes if change.new and change.new.kind != "folder"]
        # What went first, since a file may stand now where the folder of others was.
        for path in {change.path for change in changes}.difference(present):
            self.changes = with_entry(self.changes, path, None)
        for path in present:
            step = self.checkpoints.store.write_blob(str(self.state.step).encode())
            self.changes = with_entry(self.changes, path, TreeEntry(FILE, step))
        return [change.path for change in changes]

    def commit_message(self, what: str) -> str:
        """The commit message of a step: `phase 2 · todo 3 · write_file notes/a.md`."""
        phase = self.state.phase
        todo = f" · todo {phase.current.id}" if phase.current else ""
        return f"phase {phase.number}{todo} · {what}"

    def tool_call(self, index: int) -> dict[str, Any]:
        """The `index`-th tool call of the newest reply."""
        call = self.conversation.tool_calls(self.state.step)[index]
        if raw := self.arguments.tree_entry((call_id(self.state.step, index),)):
            call["function"]["arguments"] = self.checkpoints.store.read(raw.id).decode()
        return call

    def text_argument(self, index: int, name: str) -> str:
        """One text argument of a call of the newest reply; empty when it is not there."""
        try:
            arguments = json.loads(self.tool_call(index)["function"]["arguments"])
        except (ValueError, RecursionError):
            return ""
        value = arguments.get(name) if isinstance(arguments, dict) else None
        return value if isinstance(value, str) else ""
