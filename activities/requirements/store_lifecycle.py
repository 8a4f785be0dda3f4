"""Updates of the store when a job is rewound, forked, about to complete, ends or is forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select
from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import (
    activity_effect_key,
    activity_job_id,
    activity_schedule_ms,
)
from activities.job.snapshot import Snapshot
from activities.requirements import requirement_store as rows
from activities.requirements import requirement_withdrawal, store_sync, validation_claims
from activities.requirements.graph import graph_writes  # noqa: F401 - enters how writes to the graph are made up
from activities.requirements.requirement_rows import R, reopen_duplicates
from activities.stores.outbox import Call, OutboxWriter, flush_outbox, waiting_writes_message
from activities.stores.schema import CITATIONS, REQUIREMENTS
from activities.stores.store_errors import StoreUnavailableError
from activities.toolkit.agent_tools import agent_has_tool
from protocol.endings import GateFacts, Outcome

MOST_NAMED = 10
RELEASE_SECONDS = 2.0
"""Claims expire by themselves, so the end of a job waits no longer for a hanging store."""


def _job_store_writer(root: Root, snapshot: Snapshot) -> OutboxWriter:
    call = Call(activity_job_id(), activity_effect_key(), activity_schedule_ms())
    return OutboxWriter(root, call, snapshot.files, snapshot.state, snapshot.config)


def update_store_after_rewind(root: Root, snapshot: Snapshot) -> list[str]:
    """Withdraw requirements a rewind removed from the workspace; restore those it brought back.

    Returns remarks for people, such as lost deferred writes.
    """
    if not agent_has_tool(snapshot.config, "add_requirement"):
        return []
    return store_sync.sync_store_or_defer(_job_store_writer(root, snapshot))


def update_store_after_fork(root: Root, snapshot: Snapshot, parent: str) -> list[str]:
    """Take over the parent's drafts that this fork's workspace has, or the store would have them
    twice.

    Returns remarks for people.
    """
    if not agent_has_tool(snapshot.config, "add_requirement"):
        return []
    return store_sync.replace_parents_drafts(_job_store_writer(root, snapshot), parent)


def update_store_after_replacement(
    root: Root, snapshot: Snapshot, before: Sequence[str]
) -> list[str]:
    """Supersede the undecided drafts of earlier jobs that this job replaces in its project;
    otherwise its own drafts would be marked as their duplicates.

    Returns remarks for people.
    """
    if not before or not agent_has_tool(snapshot.config, "add_requirement"):
        return []
    writer = _job_store_writer(root, snapshot)
    try:
        if writer.store.may_hold_data and writer.store.read(
            lambda c: rows.list_requirement_drafts(c, before)
        ):
            writer.store.run(
                lambda c: requirement_withdrawal.supersede_drafts(c, writer.call, before)
            )
    except StoreUnavailableError as error:
        return [f"drafts of {', '.join(before)} stay in the store: {error}"]
    return []


def check_store_before_completion(root: Root, snapshot: Snapshot, facts: GateFacts) -> None:
    """Make deferred writes, and record in `facts` why a store still lacks data of this job.

    The checkpoint does not change: writes are idempotent, and the end of the job clears the list. A
    refused write stays open until it is replaced or explained.
    """
    keeps = agent_has_tool(snapshot.config, "add_requirement")
    if not snapshot.state.deferred_writes and not keeps:
        return
    writer = _job_store_writer(root, snapshot)
    try:
        facts.unstored, refused = store_sync.find_unstored_requirements(writer, filled=keeps)
    except StoreUnavailableError as error:
        facts.unstored, facts.store_unavailable = (
            [waiting_writes_message(writer, error).rstrip(".")],
            True,
        )
        return
    facts.refused_writes = [f"{entry.about}: {why}"[:300] for entry, why in refused][:MOST_NAMED]
    facts.unexplained_writes = [entry.about for entry, _ in refused]


def release_store_at_end(root: Root, snapshot: Snapshot, outcome: Outcome) -> list[str]:
    """Release the job's claims and flush its deferred writes; an unavailable store delays no end.

    Returns what an incomplete job lost, for its result.
    """
    writer, lost = _job_store_writer(root, snapshot), list[str]()
    try:
        if outcome == "completed":
            snapshot.state.deferred_writes = []
        elif snapshot.state.deferred_writes:
            lost = flush_outbox(writer)
    except StoreUnavailableError as error:
        lost = [waiting_writes_message(writer, error)]
    try:
        if agent_has_tool(snapshot.config, "take_requirement"):
            writer.store.run(
                lambda connection: validation_claims.release_claims(connection, writer.call),
                seconds=RELEASE_SECONDS,
            )
    except StoreUnavailableError as error:
        activity.logger.warning("at the end of the job %s", error)
    return lost


def forget_requirements(connection: Connection, job: str) -> None:
    """Delete a job's requirements and reopen their duplicates; late writes are ignored."""
    # Compare the full reference: job names may share a prefix or differ only in case.
    columns = REQUIREMENTS.alias().c
    refs = select(columns.job + "/" + columns.id).where(columns.job == job)
    reopen_duplicates(connection, R.duplicate_of.in_(refs))
    connection.execute(delete(CITATIONS).where(CITATIONS.c.job == job))
    connection.execute(delete(REQUIREMENTS).where(R.job == job))
