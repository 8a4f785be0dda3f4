"""What the store is told when a job goes back, is to complete, or ends."""

from __future__ import annotations

from temporalio import activity

from activities.checkpoints import Root
from activities.opening import attempt_key, job_id, order
from activities.snapshot import Snapshot
from activities.stores import requirements as rows
from activities.stores import workspace
from activities.stores.away import StoreAway
from activities.stores.deferring import Writer, flush
from activities.tools import select
from protocol.endings import Outcome


def _has(snapshot: Snapshot, tool: str) -> bool:
    """Whether the job's agent may call this tool."""
    return any(entry.name == tool for entry in select(snapshot.config.toolset))


def _writer(root: Root, snapshot: Snapshot) -> Writer:
    call = rows.Call(job_id(), attempt_key(), order())
    return Writer(root, call, snapshot.files, snapshot.state)


def after_rewind(root: Root, snapshot: Snapshot) -> None:
    """Withdraw what a rewind took out of the workspace, and put back what it brought back."""
    if _has(snapshot, "add_requirement"):
        workspace.bring_up(_writer(root, snapshot))


def before_completion(root: Root, snapshot: Snapshot) -> list[str]:
    """Make what is deferred; why the stores still lack something of this job.

    The checkpoint does not change: what is made twice is made once, and the end of the job clears
    the list.
    """
    keeps = _has(snapshot, "add_requirement")
    if not snapshot.state.deferred and not keeps:
        return []
    return workspace.unstored(_writer(root, snapshot), filled=keeps)


def at_end(root: Root, snapshot: Snapshot, outcome: Outcome) -> None:
    """Leave nothing behind that waits for this job. A store that is away holds up no end."""
    writer = _writer(root, snapshot)
    try:
        if outcome == "completed":
            snapshot.state.deferred = []
        elif snapshot.state.deferred:
            flush(writer)
        if _has(snapshot, "take_requirement"):
            writer.store.run(lambda connection: rows.release(connection, writer.call))
    except StoreAway as error:
        activity.logger.warning("at the end of the job %s", error)
