"""An opened checkpoint: all of a job as one tree.

    config.json     the agent's configuration, pinned when the job started
    state.json      phase, todos, scope, counters (`protocol.job_state.JobState`)
    conversation/   messages of the running phase, ready to send; provider data that goes back with
                    them in provider/
    files/          the workspace
    reads/          for each path read in this phase, the content as it was then
    changes/        for each changed path, the number of the step that last changed it

and, if present,

    context.json    what is cleared and summarised (`activities.job.context_view`)
    reasoning/      the model's reasoning, by step
    arguments/      unreadable arguments of calls, as received
    history/        the conversations of earlier phases, by number
    review/         the conversation of the last review of a completion
    judge/          the judge's verdicts on phases, by step
    images/         images shown to the model in this phase, by hash
    calls/          the calls that guards remember (`activities.guards.call_memory`)
    helpers/        the conversations of `delegate`'s helpers, by step and call
    project.json    what a project handed over to this job (`protocol.handoffs.ProjectLink`)
    repository.json the job's repository (`protocol.repository_link.RepositoryLink`)

Opening and saving cost what changed: untouched parts keep their ids.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from activities.checkpoints import (
    Checkpoints,
    Files,
    FilesError,
    NewerCheckpoint,
    PathRefused,
    diff_files,
)
from activities.checkpoints.alternates import lend_objects
from activities.checkpoints.entries import with_entry
from activities.checkpoints.object_store import EMPTY_TREE, ObjectStore
from activities.checkpoints.sharded_tree import (
    FILE,
    FOLDER,
    TreeEntry,
    build_tree,
    list_tree_entries,
)
from activities.checkpoints.volatile_paths import without_volatile
from activities.job.context_view import Compaction, ContextView
from activities.job.conversation import Conversation
from activities.job.conversation_calls import count_newest_results, newest_calls, tool_call_id
from activities.redaction.credentials import register_credential_variables
from config.schema.agent import AgentConfig
from protocol.handoffs import ProjectLink
from protocol.job_state import JobState, ShownImage
from protocol.repository_link import RepositoryLink

_configs: dict[bytes, AgentConfig] = {}
P = TypeVar("P", bound=BaseModel)
SOMETIMES = ("reasoning", "history", "review", "judge", "arguments", "helpers", "images", "calls")


def _parse_snapshot_part(kind: type[P], name: str, data: bytes) -> P:
    """Parse a part of a checkpoint.

    Keys that are not known are not skipped: the next checkpoint would lose them. Raises
    NewerCheckpoint: it has such keys.
    """
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        unknown = [
            ".".join(map(str, each["loc"]))
            for each in error.errors()
            if each["type"] == "extra_forbidden"
        ]
        if len(unknown) < error.error_count():
            raise
        raise NewerCheckpoint(
            f"a later version of Longhaul wrote the checkpoint, whose {name} has what this one "
            f"does not know ({', '.join(unknown)}); use that version"
        ) from None


def _load_snapshot_config(store: ObjectStore, blob: bytes) -> AgentConfig:
    if blob not in _configs:
        if len(_configs) > 256:
            _configs.clear()
        _configs[blob] = _parse_snapshot_part(AgentConfig, "config.json", store.read(blob))
        register_credential_variables(_configs[blob].named_variables)
    return _configs[blob]


def snapshot_workspace(checkpoints: Checkpoints, commit: str) -> Files:
    parts = list_tree_entries(checkpoints.store, bytes.fromhex(checkpoints.tree_id(commit)))
    return checkpoints.files(parts[b"files"].id.hex())


def _of_each_folder(value: Callable[[str], Files]) -> dict[str, Any]:
    """Return a value for each of the folders that a checkpoint has only if they are not empty."""
    return {name: value(name) for name in SOMETIMES}


@dataclass
class Snapshot:
    checkpoints: Checkpoints
    commit: str
    config: AgentConfig
    config_id: str
    """Blob id of the pinned configuration, a cache key for everything that depends on it alone."""
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
    calls: Files
    link: ProjectLink | None = None
    repository: RepositoryLink | None = None
    on_save: Callable[[str], None] | None = None
    """Called with each saved commit."""

    @classmethod
    def start(cls, checkpoints: Checkpoints, config: AgentConfig, state: JobState) -> Snapshot:
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
            **_of_each_folder(lambda _: empty),
        )
        snapshot.pin_config(config)
        return snapshot

    @classmethod
    def load(cls, checkpoints: Checkpoints, commit: str) -> Snapshot:
        """Open a checkpoint. Raises CheckpointMissing, NewerCheckpoint."""
        store = checkpoints.store
        parts = list_tree_entries(store, bytes.fromhex(checkpoints.tree_id(commit)))

        def part_files(name: bytes) -> Files:
            part = parts.get(name)
            return checkpoints.files((part.id if part else EMPTY_TREE).hex())

        def optional_part(kind: type[P], name: str) -> P | None:
            raw = parts.get(name.encode())
            return _parse_snapshot_part(kind, name, store.read(raw.id)) if raw else None

        if repository := optional_part(RepositoryLink, "repository.json"):
            register_credential_variables(repository.named_variables)
        config = _load_snapshot_config(store, parts[b"config.json"].id)
        state = _parse_snapshot_part(JobState, "state.json", store.read(parts[b"state.json"].id))
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
            optional_part(Compaction, "context.json") or Compaction(),
            link=optional_part(ProjectLink, "project.json"),
            repository=repository,
            **_of_each_folder(lambda name: part_files(name.encode())),
        )

    def save(self, message: str, timestamp: int) -> str:
        """Write the tree and its commit; the id depends only on content, parent and date."""
        parents = [self.commit] if self.commit else []
        tree = self._write_tree(
            self.state, self.files, self.reads, self.changes, self.conversation.files, self.review
        )
        self.commit = self.checkpoints.commit(tree.hex(), parents, message, timestamp)
        if self.on_save:
            self.on_save(self.commit)
        return self.commit

    def borrow_objects(self, repository: Path) -> None:
        """Read a repository's objects where they are, without copying."""
        lend_objects(repository, self.checkpoints.path)
        self.checkpoints.store.flush()
        self.checkpoints.store.reload()

    @property
    def comparable_tree(self) -> str:
        """Return the hex id of the tree without provider data, volatile paths and ids of commits.

        It is equal for two runs of the same steps. Without any of either it is the checkpoint's
        tree.
        """
        patterns = self.config.shell.volatile
        return self._write_tree(
            self.state.without_commits(),
            without_volatile(self.files, patterns),
            without_volatile(self.reads, patterns),
            without_volatile(self.changes, patterns),
            self.conversation.without_provider_data,
            Conversation(self.review).without_provider_data,
            times=False,
        ).hex()

    def _write_tree(
        self,
        job_state: JobState,
        workspace: Files,
        reads: Files,
        changes: Files,
        conversation: Files,
        review: Files,
        *,
        times: bool = True,
    ) -> bytes:
        store = self.checkpoints.store
        state = store.write_blob(job_state.model_dump_json(exclude_defaults=True).encode())
        folders = {
            b"conversation": conversation,
            b"files": workspace,
            b"reads": reads,
            b"changes": changes,
        }
        extra = _of_each_folder(partial(getattr, self)) | {"review": review}
        if not times:
            del extra["calls"]
        empty = EMPTY_TREE.hex()
        folders |= {name.encode(): part for name, part in extra.items() if part.id != empty}
        parts = {name: TreeEntry(FOLDER, bytes.fromhex(part.id)) for name, part in folders.items()}
        parts[b"config.json"] = TreeEntry(FILE, bytes.fromhex(self.config_id))
        parts[b"state.json"] = TreeEntry(FILE, state)
        if self.compaction != Compaction():
            context = self.compaction.model_dump_json().encode()
            parts[b"context.json"] = TreeEntry(FILE, store.write_blob(context))
        for name, link in ((b"project.json", self.link), (b"repository.json", self.repository)):
            if link:
                data = link.model_dump_json(exclude_defaults=True).encode()
                parts[name] = TreeEntry(FILE, store.write_blob(data))
        return build_tree(store, parts)

    @property
    def view(self) -> ContextView:
        return ContextView(self.conversation, self.compaction)

    def pin_config(self, config: AgentConfig) -> None:
        register_credential_variables(config.named_variables)
        self.config = config
        self.config_id = self.checkpoints.store.write_blob(config.model_dump_json().encode()).hex()

    def begin_conversation(self, *messages: dict[str, Any]) -> None:
        empty = Files.empty(self.checkpoints.store)
        self.conversation = Conversation(empty).append(*messages)
        self.compaction = Compaction()
        self.reads = self.arguments = self.images = empty

    def shelve_conversation(self, number: int) -> None:
        raw = TreeEntry(FOLDER, bytes.fromhex(self.conversation.without_provider_data.id))
        self.history = self.history.with_tree_entry((f"{number:04d}",), raw)

    def keep_reasoning(self, text: str) -> None:
        self.reasoning = self._with_step_page(self.reasoning, text)

    def keep_arguments(self, index: int, arguments: str) -> None:
        raw = TreeEntry(FILE, self.checkpoints.store.write_blob(arguments.encode()))
        self.arguments = self.arguments.with_tree_entry(
            (tool_call_id(self.state.step, index),), raw
        )

    def keep_helper(self, index: int, conversation: Conversation) -> None:
        raw = TreeEntry(FOLDER, bytes.fromhex(conversation.without_provider_data.id))
        self.helpers = self.helpers.with_tree_entry((tool_call_id(self.state.step, index),), raw)

    def keep_image(self, data: builtins.bytes, mime: str, pointer: str, tokens: int) -> None:
        raw = TreeEntry(FILE, self.checkpoints.store.write_blob(data))
        shown = ShownImage(pointer=pointer, blob=raw.id.hex(), mime=mime, tokens=tokens)
        self.images = self.images.with_tree_entry((shown.blob,), raw)
        self.state.images = [*self.state.images, shown]

    def append_images(self) -> None:
        """Append the images of the newest reply's results, which themselves are text only."""
        if self.state.images and count_newest_results(self.conversation) == len(
            newest_calls(self.conversation, self.state.step)
        ):
            self.conversation = self.conversation.append_images(self.state.images)
            self.state.images = []

    def keep_judgement(self, text: str) -> None:
        self.judge = self._with_step_page(self.judge, text)

    def _with_step_page(self, folder: Files, text: str) -> Files:
        raw = TreeEntry(FILE, self.checkpoints.store.write_blob(text.encode()))
        return folder.with_tree_entry((f"{self.state.step:06d}.md",), raw)

    def changed_since(self, step: int) -> list[str]:
        changed_paths = []
        for entry in self.changes.walk():
            changed = int(self.changes.read_entry(entry)) if entry.kind == "file" else 0
            if changed > step:
                changed_paths.append((changed, entry.path))
        return [path for _, path in sorted(changed_paths)]

    def read_bytes(self, path: str) -> bytes | None:
        # A person or a command may have left a folder there, or a dangling link.
        with suppress(FilesError, PathRefused):
            return self.files.read(path)
        return None

    def read_text(self, path: str) -> str:
        return (self.read_bytes(path) or b"").decode(errors="replace")

    def write_system_file(self, path: str, data: builtins.bytes) -> None:
        """Write a workspace file of the system, replacing whatever is in the way."""
        raw = TreeEntry(FILE, self.checkpoints.store.write_blob(data))
        self.files = with_entry(self.files, path, raw)

    def record_changes(self, before: Files) -> list[str]:
        changes = list(diff_files(before, self.files))
        present = [change.path for change in changes if change.new and change.new.kind != "folder"]
        # Removals first, since a file may now be where their folder was.
        for path in {change.path for change in changes}.difference(present):
            self.changes = with_entry(self.changes, path, None)
        for path in present:
            step = self.checkpoints.store.write_blob(str(self.state.step).encode())
            self.changes = with_entry(self.changes, path, TreeEntry(FILE, step))
        return [change.path for change in changes]

    def commit_message(self, what: str) -> str:
        phase = self.state.phase
        todo = f" · todo {phase.current.id}" if phase.current else ""
        return f"phase {phase.number}{todo} · {what}"

    def tool_call(self, index: int) -> dict[str, Any]:
        call = newest_calls(self.conversation, self.state.step)[index]
        if raw := self.arguments.tree_entry((tool_call_id(self.state.step, index),)):
            call["function"]["arguments"] = self.checkpoints.store.read(raw.id).decode()
        return call

    def text_argument(self, index: int, name: str) -> str:
        try:
            arguments = json.loads(self.tool_call(index)["function"]["arguments"])
        except (ValueError, RecursionError):
            return ""
        value = arguments.get(name) if isinstance(arguments, dict) else None
        return value if isinstance(value, str) else ""
