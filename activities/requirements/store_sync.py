"""Synchronise a workspace's requirements to the store."""

from __future__ import annotations

from activities.requirements import requirement_files, validation_claims
from activities.requirements import requirement_store as rows
from activities.requirements.requirement import Requirement
from activities.stores.outbox import (
    Call,
    OutboxWriter,
    attempt_outbox_writes,
    defer_write,
    flush_outbox,
    register_outbox_maker,
    write_or_defer,
)
from activities.stores.store_errors import StoreRefusedError, StoreUnavailableError
from protocol.job_state import DeferredWrite

FILLED = "requirements"
DECIDED = "decision"
TAKEN_OVER = "takeover"
MAX_NAMED = 5


@register_outbox_maker(FILLED)
def _sync_deferred_fill(writer: OutboxWriter, _entry: DeferredWrite) -> list[str]:
    """Fill the store from the current workspace, whatever was missed before."""
    return sync_requirement_store(writer)


@register_outbox_maker(DECIDED)
def _sync_deferred_decision(writer: OutboxWriter, entry: DeferredWrite) -> list[str]:
    call = Call(writer.call.job, entry.key, entry.at)
    writer.store.run(
        lambda connection: validation_claims.decide_claim(connection, call, **entry.data)
    )
    return []


@register_outbox_maker(TAKEN_OVER)
def _sync_deferred_takeover(writer: OutboxWriter, entry: DeferredWrite) -> list[str]:
    """Take over requirements that the fork's workspace still has as its parent had them."""
    present = {
        name: blob
        for name, (_, blob) in requirement_files.list_requirement_files(writer.files).items()
    }
    parent = entry.data["parent"]
    writer.store.run(lambda c: rows.take_over_stored_requirements(c, writer.call, parent, present))
    problems = sync_requirement_store(writer)
    writer.store.run(lambda c: rows.withdraw_what_parent_withdrew(c, writer.call, parent, present))
    return problems


def replace_parents_drafts(writer: OutboxWriter, parent: str) -> list[str]:
    """Make a fork's drafts replace its parent's in the store; return remarks for people."""
    if not requirement_files.list_requirement_files(writer.files):
        return []
    call = writer.call
    entry = DeferredWrite(kind=TAKEN_OVER, key=call.key, at=call.at, data={"parent": parent})
    try:
        return write_or_defer(writer, entry)
    except StoreRefusedError as refusal:
        return [f"Not in the store: {refusal}"]


def sync_requirement_store(writer: OutboxWriter) -> list[str]:
    """Bring the store up to date with the workspace; return problems with files in it.

    Raises:
        StoreUnavailableError: The store does not answer.
    """
    job, store = writer.call.job, writer.store
    listed = requirement_files.list_requirement_files(writer.files)
    present = {name: blob for name, (_, blob) in listed.items()}
    stored = store.read(lambda connection: rows.stored_requirement_blobs(connection, job))
    if stored == present:
        return []
    problems: list[str] = []
    changed: list[tuple[Requirement, str]] = []
    for name, (path, blob) in listed.items():
        if stored.get(name) != blob:
            try:
                changed.append(
                    (requirement_files.read_requirement_file(writer.files, path, name, job), blob)
                )
            except requirement_files.InvalidWorkspaceFile as problem:
                problems.append(str(problem))
    store.run(
        lambda connection: rows.match_rows_to_workspace(connection, writer.call, present, changed)
    )
    return problems


def fill_or_defer(writer: OutboxWriter) -> list[str]:
    """Like `sync_requirement_store`, but deferred if the store does not answer."""
    # Keep at most one such entry: filling covers all earlier changes.
    state = writer.state
    state.deferred_writes = [entry for entry in state.deferred_writes if entry.kind != FILLED]
    try:
        return [*flush_outbox(writer, "relational"), *sync_requirement_store(writer)]
    except StoreRefusedError as refusal:
        return [f"Not in the store: {refusal}"]
    except StoreUnavailableError as error:
        entry = DeferredWrite(kind=FILLED, key=writer.call.key, at=writer.call.at)
        return defer_write(writer, entry, error)


def find_unstored(
    writer: OutboxWriter, *, filled: bool
) -> tuple[list[str], list[tuple[DeferredWrite, str]]]:
    """Make deferred writes, and fill the store if asked.

    Returns:
        What is still missing, for the gate; and refused writes, each with the reason.

    Raises:
        StoreUnavailableError: A store does not answer.
    """
    try:
        _, refused = attempt_outbox_writes(writer)
        problems = sync_requirement_store(writer) if filled else []
    except StoreRefusedError as refusal:
        about = DeferredWrite(
            kind=FILLED, key=writer.call.key, at=writer.call.at, about="the requirements"
        )
        return [], [*refused, (about, str(refusal))]
    return problems[:MAX_NAMED], refused


def waiting_writes_message(writer: OutboxWriter, error: StoreUnavailableError) -> str:
    """Return a message such as `2 writes wait, since the store does not answer.`"""
    waiting = len(writer.state.deferred_writes) or 1
    return f"{waiting} {'write waits' if waiting == 1 else 'writes wait'}, since {error}"
