"""Ways back: to the newest checkpoint that can be found, and from the folder of a paused job."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from temporalio import activity

from activities.checkpoints import CheckpointMissing, Root, collect, diff, open_checkpoints
from activities.failures import failure, typed
from activities.fetching import fetch_job
from activities.folder import project_folder
from activities.guards.secrets import redact
from activities.heartbeats import heartbeats_from_thread
from activities.opening import check_root, job_id, open_snapshot, order, scheduled_at
from activities.plain import plain
from activities.plan import boxes, parse_plan
from activities.snapshot import Snapshot, with_entry
from activities.tools.ownership import is_system
from protocol.requests import At, Done, ErrorNote, Imported, Recovered, RecoverRequest
from protocol.scope import follow_boxes


def recovery_activities(root: Root) -> list[Callable[..., object]]:
    """What recovers a job, and what lets a person in."""

    @activity.defn(name="find_checkpoint")
    def find_checkpoint(request: RecoverRequest) -> Recovered:
        """The newest of the candidates that this store, or the remote, holds whole."""
        with typed(), heartbeats_from_thread():
            check_root(root, request.root, request.remote)
            if request.remote:
                fetch_job(root, job_id(), request.remote, request.candidates[0])
            for commit in request.candidates:
                with suppress(CheckpointMissing):
                    checkpoints = open_checkpoints(root, job_id())
                    if checkpoints.is_whole(commit):
                        state = Snapshot.load(checkpoints, commit).state.without_notes()
                        return Recovered(commit=commit, at=scheduled_at(), state=state)
            raise failure(
                "Storage",
                f"None of the job's checkpoints can be found under {root.path}. Put the folder "
                ".longhaul/checkpoints back from a backup, then resume the job.",
            )

    @activity.defn(name="take_folder")
    def take_folder(request: At) -> Imported:
        """Take what a person changed in the folder of a paused job into a checkpoint."""
        with typed(), heartbeats_from_thread():
            snapshot = open_snapshot(root, request)
            before = snapshot.files
            taken, notes = collect(snapshot.checkpoints, root, job_id(), before)
            for change in diff(before, taken):
                activity.heartbeat()
                if is_system(change.path):
                    # The archive and the like stay the system's, whoever edits.
                    kept = before.raw(tuple(change.path.split("/")))
                    taken = with_entry(taken, change.path, kept)
                    notes.append(
                        f"{plain(change.path)} is kept by the system; the edit was left out"
                    )
            if taken == before:
                return Imported(commit=request.commit, at=scheduled_at(), notes=notes[:20])
            snapshot.files = taken
            changed = snapshot.note_changes(before)
            ledger = snapshot.state.model_copy(deep=True)
            follow_boxes(snapshot.state.scope, boxes(parse_plan(snapshot.text("plan.md"))))
            at = scheduled_at()
            commit = snapshot.save(
                snapshot.story(f"taken from the folder: {len(changed)} paths"), at
            )
            return Imported(
                commit=commit,
                at=at,
                notes=notes[:20],
                scope=snapshot.state.items_changed_since(ledger.scope),
            )

    @activity.defn(name="show_folder")
    def show_folder(request: At) -> Done:
        """Bring the folder up to the checkpoint, whole: a person is about to look at it."""
        with typed(), heartbeats_from_thread():
            snapshot = open_snapshot(root, request)
            project_folder(root, snapshot.checkpoints, request.commit, order(), whole=True)
            return Done()

    @activity.defn(name="write_error")
    def write_error(request: ErrorNote) -> Done:
        """Leave what went wrong in `errors/` of the folder; no part of any checkpoint."""
        with typed(), heartbeats_from_thread():
            check_root(root, request.root, request.remote)
            folder = root.workspace(job_id()) / "errors"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"step_{request.step:05d}.md").write_text(redact(request.text))
            return Done()

    return [find_checkpoint, take_folder, show_folder, write_error]
