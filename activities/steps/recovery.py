"""Ways back: to the newest checkpoint that can be found, and from the folder of a paused job."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

from temporalio import activity

from activities.checkpoints import CheckpointMissing, Root, diff, open_checkpoints, take_edits
from activities.checkpoints.entries import with_entry
from activities.checkpoints.forgotten import forgotten
from activities.job.activity_context import check_root, job_id, open_snapshot, order, scheduled_at
from activities.job.conversation import ERROR
from activities.job.edits import describe_edits
from activities.job.fetch import fetch_job
from activities.job.folder import pack_if_full, project_folder
from activities.job.plan_file import boxes, parse_plan
from activities.job.snapshot import Snapshot
from activities.redaction.credentials import hide
from activities.redaction.secrets import redact
from activities.runtime.failures import failure, typed
from activities.runtime.heartbeats import heartbeats_from_thread, now_and_then
from activities.steps.call_refs import newest
from activities.steps.show_call import bounded
from activities.steps.tell import amend
from activities.steps.tool_call import error_line
from activities.text.plain import plain
from activities.toolkit.ownership import READ, in_the_way, system_part
from protocol.requests import (
    EmptyReply,
    FolderReply,
    ImportReply,
    JobPosition,
    RecoverReply,
    RecoverRequest,
    WriteErrorRequest,
)
from protocol.scope import follow_boxes


class Recovery:
    """The activities that recover a job, and those that let a person in."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @activity.defn(name="find_checkpoint")
    def find_checkpoint(self, request: RecoverRequest) -> RecoverReply:
        """The newest of the candidates that this store, or the remote, holds whole."""
        with typed(), heartbeats_from_thread():
            check_root(self._root, request.root, request.remote)
            if request.remote:
                fetch_job(self._root, job_id(), request.remote, request.candidates[0])
            with suppress(CheckpointMissing):
                checkpoints = open_checkpoints(self._root, job_id())
                for commit in checkpoints.whole(request.candidates):
                    with suppress(CheckpointMissing):
                        return _recovered(Snapshot.load(checkpoints, commit))
            told = f"None of the job's checkpoints can be found under {self._root.path}"
            if record := forgotten(self._root, job_id()):
                # Temporal's reset has it run once more.
                told = f"The {record.line}"
            raise failure(
                "Storage",
                f"{told}. Put the folder .longhaul/checkpoints back from a backup, then resume "
                "the job.",
            )

    @activity.defn(name="take_folder")
    def take_folder(self, request: JobPosition) -> ImportReply:
        """Take what a person changed in the folder of a paused job into a checkpoint."""
        with typed(), heartbeats_from_thread():
            snapshot = open_snapshot(self._root, request)
            before = snapshot.files
            taken, notes = take_edits(snapshot.checkpoints, self._root, job_id(), before)
            beat = now_and_then()
            for change in diff(before, taken):
                beat()
                if top := system_part(change.path):
                    # The archive and the like stay the system's, whoever edits. As a whole: of a
                    # folder in place of a file, an empty one would stay.
                    taken = with_entry(taken, top, before.raw(tuple(top.split("/"))))
                    notes.append(
                        f"{plain(change.path)} is kept by the system; the edit was left out"
                    )
                elif (
                    change.new and change.new.kind != "folder" and (why := in_the_way(change.path))
                ):
                    kept = before.raw(tuple(change.path.split("/")))
                    taken = with_entry(taken, change.path, kept)
                    notes.append(f"{why} It was left out")
            snapshot.files = taken
            for path in READ:
                entry = taken.raw((path,))
                if entry and entry != before.raw((path,)) and snapshot.bytes(path) is None:
                    taken = with_entry(taken, path, before.raw((path,)))
                    notes.append(
                        f"{path} is a folder, or a link that leads to no file of the workspace; it "
                        "was left out. Put a file there"
                    )
            snapshot.files = taken
            amend(snapshot)
            edits = describe_edits(before, snapshot.files, list(diff(before, snapshot.files)))
            if snapshot.files == before:
                return ImportReply(commit=request.commit, at=scheduled_at(), notes=notes[:20])
            changed = snapshot.note_changes(before)
            ledger = snapshot.state.model_copy(deep=True)
            follow_boxes(snapshot.state.scope, boxes(parse_plan(snapshot.text("plan.md"))))
            at = scheduled_at()
            commit = snapshot.save(
                snapshot.story(f"taken from the folder: {len(changed)} paths"), at
            )
            # Here, where a person waits for the job, and not beside its steps.
            pack_if_full(snapshot.checkpoints, job_id())
            return ImportReply(
                commit=commit,
                at=at,
                notes=notes[:20],
                edits=edits,
                scope=snapshot.state.items_changed_since(ledger.scope),
            )

    @activity.defn(name="show_folder")
    def show_folder(self, request: JobPosition) -> FolderReply:
        """Bring the folder up to the checkpoint, whole: a person is about to look at it."""
        with typed(), heartbeats_from_thread():
            snapshot = open_snapshot(self._root, request)
            moved = project_folder(
                self._root, snapshot.checkpoints, request.commit, order(), whole=True
            )
            return FolderReply(moved_aside=moved[:20])

    @activity.defn(name="write_error")
    def write_error(self, request: WriteErrorRequest) -> EmptyReply:
        """Leave what went wrong in `errors/` of the folder; no part of any checkpoint."""
        with typed(), heartbeats_from_thread():
            check_root(self._root, request.root, request.remote)
            folder = self._root.workspace(job_id()) / "errors"
            folder.mkdir(parents=True, exist_ok=True)
            page = folder / f"step_{request.step:05d}.md"
            # First what needs no checkpoint, which may be what is missing.
            page.write_text(redact(request.text))
            parts = [request.text]
            if request.call is not None:
                parts.append(f"## The call\n\n{_described_call(self._root, request)}\n")
            if request.cause:
                parts.append(f"## The cause\n\n{request.cause}\n")
            page.write_text(hide(redact("\n".join(parts))))
            return EmptyReply()

    @property
    def activities(self) -> list[Callable[..., object]]:
        """All of them."""
        return [self.find_checkpoint, self.take_folder, self.show_folder, self.write_error]


def _described_call(root: Root, request: WriteErrorRequest) -> str:
    """The call with its arguments, as far as they can be read and may be shown."""
    assert request.call is not None
    try:
        called = open_snapshot(root, request).call(request.call)["function"]
    except Exception as error:  # whatever keeps it from being read is not worth failing over
        return f"It cannot be read: {type(error).__name__}: {error}"
    try:
        arguments = json.loads(called["arguments"])
        listed = bounded(arguments)
    except (ValueError, AttributeError):
        listed = bounded({"arguments": called["arguments"]})
    lines = [f"- {name}: {value}" for name, value in listed.items()]
    return "\n".join([f"`{called['name']}` with", "", *lines] if lines else [called["name"]])


def _recovered(snapshot: Snapshot) -> RecoverReply:
    """Where a job goes on from: in the middle of a reply, or at the end of one with which its phase
    may end."""
    found = RecoverReply(
        commit=snapshot.commit, at=scheduled_at(), state=snapshot.state.without_notes()
    )
    strategic = snapshot.state.phase.kind == "strategic"
    found.handed_over = strategic and snapshot.files.entry("todos.yaml") is not None
    calls, made = newest(snapshot)
    if made < len(calls) or found.handed_over:
        found.calls, found.next_call = calls, made
        results = snapshot.conversation.messages(len(snapshot.conversation) - made)
        for place, result in enumerate(results):
            text = str(result["content"])
            if text.startswith(ERROR):
                found.failed_call, found.failure = place, error_line(text.removeprefix(ERROR))
                break
    return found
