"""The end of a job: its result, written where people look and returned to Temporal."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import activity

from activities.checkpoints import Root
from activities.commands.private import forget_private
from activities.documents.inputs import doubts
from activities.job.activity_context import attempt_key, job_id, open_snapshot, scheduled_at
from activities.job.folder import settle
from activities.job.snapshot import Snapshot
from activities.job.workspace_summary import with_summary
from activities.phases.archive import archive_page, archive_phase
from activities.phases.predefined import closed_with
from activities.requirements.store_lifecycle import at_end
from activities.runtime.failures import typed
from activities.runtime.heartbeats import heartbeats
from activities.steps.cancel_start import ask_server
from activities.tool_catalogue import REGISTRY
from protocol.endings import CloseReply, CloseRequest, JobResult
from protocol.text import as_sentence

MAX_LISTED = 200

NOT_IN_FILE: Any = {"checkpoint": True, "tree": True, "usage": {"cached_tokens", "written_tokens"}}
"""What differs between two runs of the same steps: ids, and how much of a prompt was cached, which
depends on when a call was repeated."""


class Closing:
    """The `close_job` activity."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @activity.defn(name="close_job")
    async def close_job(self, request: CloseRequest) -> CloseReply:
        """Write `output/completion.json`, tag the last checkpoint, settle the folder."""
        with typed():
            async with heartbeats():
                closed = await asyncio.to_thread(self._close, request)
                if request.request_cancel:
                    await ask_server()
                return closed

    def _close(self, request: CloseRequest) -> CloseReply:
        snapshot = open_snapshot(self._root, request)
        before = snapshot.files
        result = _result(snapshot, request)
        phase = snapshot.state.phase
        completed = closed_with(snapshot) if request.status == "completed" else []
        if request.status == "completed":
            phase.close(completed)
        result.unresolved += at_end(self._root, snapshot, request.status)
        result.notes = "\n".join(filter(None, [result.notes, *doubts(snapshot.files)]))
        page = archive_page(snapshot, "closed", request.reason, result.summary)
        snapshot.files = archive_phase(snapshot.files, phase, page)
        snapshot.files = with_summary(snapshot)
        told = result.model_dump_json(indent=2, exclude=NOT_IN_FILE) + "\n"
        snapshot.place("output/completion.json", told.encode())
        snapshot.note_changes(before)
        at = scheduled_at()
        result.checkpoint = snapshot.save(f"phase {phase.number} · job {request.status}", at)
        result.tree = snapshot.compared
        moved = settle(self._root, snapshot, request.status, attempt_key(), last=True)
        forget_private(self._root, job_id())
        return CloseReply(
            commit=result.checkpoint,
            at=at,
            result=result,
            completed=completed,
            moved_aside=moved[:20],
        )


def _result(snapshot: Snapshot, request: CloseRequest) -> JobResult:
    arguments: dict[str, Any] = {"summary": request.reason}
    if request.call is not None:
        called = snapshot.call(request.call)["function"]
        arguments = REGISTRY["job_complete"].parse(called["arguments"])
        arguments["unresolved"] = arguments["unresolved"] or []
    elif open_items := snapshot.state.open_items:
        arguments["unresolved"] = [item.line for item in open_items[:MAX_LISTED]]
    return JobResult(
        status=request.status,
        dropped=[
            f"{item.id}: {as_sentence(item.text)} Reason: {item.reason}"
            for item in snapshot.state.scope
            if item.status == "dropped"
        ][:MAX_LISTED],
        phases=request.phases,
        rewinds=request.rewinds,
        usage=request.usage,
        **arguments,
    )
