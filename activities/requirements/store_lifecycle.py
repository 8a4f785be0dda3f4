"""What the store is told when a job goes back, is to complete, or ends."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import attempt_key, job_id, scheduled_ms
from activities.job.snapshot import Snapshot
from activities.requirements import claims, store_sync
from activities.requirements import requirement_store as rows
from activities.requirements.graph import writes  # noqa: F401 - enters how writes to the graph are made up
from activities.stores.errors import StoreUnavailableError
from activities.stores.outbox import Call, StoreWriter, flush_deferred
from activities.toolkit.agent_tools import has_tool
from protocol.endings import GateFacts, Outcome

MOST_NAMED = 10
RELEASE_SECONDS = 2.0
"""What a job took runs out by itself; a store that hangs is not worth a longer wait at its end."""


def _job_writer(root: Root, snapshot: Snapshot) -> StoreWriter:
    call = Call(job_id(), attempt_key(), scheduled_ms())
    return StoreWriter(root, call, snapshot.files, snapshot.state, snapshot.config)


def after_rewind(root: Root, snapshot: Snapshot) -> list[str]:
    """Withdraw what a rewind took out of the workspace, and put back what it brought back.

    Answers with remarks for people, such as on deferred writes that are lost.
    """
    if not has_tool(snapshot.config, "add_requirement"):
        return []
    return store_sync.fill_or_defer(_job_writer(root, snapshot))


def after_fork(root: Root, snapshot: Snapshot, parent: str) -> list[str]:
    """Take over the drafts of the job that this one was forked from, which would else be there
    twice: what the fork's workspace has of them is the fork's from now on.

    Answers with remarks for people.
    """
    if not has_tool(snapshot.config, "add_requirement"):
        return []
    return store_sync.take_over(_job_writer(root, snapshot), parent)


def supersede_earlier(root: Root, snapshot: Snapshot, before: Sequence[str]) -> list[str]:
    """For a job that begins in the place of others of its project, which are over: what they left
    undecided is nobody's any more, and their successor would take its own for a duplicate of it.

    Answers with remarks for people.
    """
    if not before or not has_tool(snapshot.config, "add_requirement"):
        return []
    writer = _job_writer(root, snapshot)
    try:
        if writer.store.may_hold_data and writer.store.read(lambda c: rows.list_drafts(c, before)):
            writer.store.run(lambda c: rows.supersede_drafts(c, writer.call, before))
    except StoreUnavailableError as error:
        return [f"drafts of {', '.join(before)} stay in the store: {error}"]
    return []


def before_completion(root: Root, snapshot: Snapshot, facts: GateFacts) -> None:
    """Make what is deferred; enter why the stores still lack something of this job.

    The checkpoint does not change: what is made twice is made once, and the end of the job clears
    the list. What a store refuses is open until it is made anew, or explained.
    """
    keeps = has_tool(snapshot.config, "add_requirement")
    if not snapshot.state.deferred_writes and not keeps:
        return
    writer = _job_writer(root, snapshot)
    try:
        facts.unstored, refused = store_sync.find_unstored(writer, filled=keeps)
    except StoreUnavailableError as error:
        facts.unstored, facts.store_unavailable = (
            [store_sync.waiting_message(writer, error).rstrip(".")],
            True,
        )
        return
    facts.refused_writes = [f"{entry.about}: {why}"[:300] for entry, why in refused][:MOST_NAMED]
    facts.unexplained_writes = [entry.about for entry, _ in refused]


def at_end(root: Root, snapshot: Snapshot, outcome: Outcome) -> list[str]:
    """Leave nothing behind that waits for this job. A store that is away holds up no end.

    Answers with what is lost of a job that did not complete, for its result.
    """
    writer, lost = _job_writer(root, snapshot), list[str]()
    try:
        if outcome == "completed":
            snapshot.state.deferred_writes = []
        elif snapshot.state.deferred_writes:
            lost = flush_deferred(writer)
    except StoreUnavailableError as error:
        lost = [store_sync.waiting_message(writer, error)]
    try:
        if has_tool(snapshot.config, "take_requirement"):
            writer.store.run(
                lambda connection: claims.release_claims(connection, writer.call),
                seconds=RELEASE_SECONDS,
            )
    except StoreUnavailableError as error:
        activity.logger.warning("at the end of the job %s", error)
    return lost
