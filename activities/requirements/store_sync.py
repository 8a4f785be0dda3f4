"""The requirements of a workspace brought into the store."""

from __future__ import annotations

from activities.requirements import claims, folder
from activities.requirements import requirement_store as rows
from activities.requirements.requirement import Requirement
from activities.stores.errors import StoreAway, StoreRefuses
from activities.stores.outbox import Call, Writer, attempt, defer, flush, makes, write
from protocol.state import DeferredWrite

FILLED = "requirements"
DECIDED = "decision"
TAKEN_OVER = "takeover"
MOST_NAMED = 5


@makes(FILLED)
def _fill(writer: Writer, _entry: DeferredWrite) -> list[str]:
    """Whatever was missed, the workspace as it is now is what counts."""
    return fill(writer)


@makes(DECIDED)
def _decide(writer: Writer, entry: DeferredWrite) -> list[str]:
    call = Call(writer.call.job, entry.key, entry.at)
    writer.store.run(lambda connection: claims.decide(connection, call, **entry.data))
    return []


@makes(TAKEN_OVER)
def _take_over(writer: Writer, entry: DeferredWrite) -> list[str]:
    """What the fork's workspace still has as its parent had it."""
    present = {name: blob for name, (_, blob) in folder.listed(writer.files).items()}
    parent = entry.data["parent"]
    writer.store.run(lambda c: rows.take_over(c, writer.call, parent, present))
    problems = fill(writer)
    writer.store.run(lambda c: rows.withdraw_as_parent(c, writer.call, parent, present))
    return problems


def take_over(writer: Writer, parent: str) -> list[str]:
    """Have a fork's drafts in the store instead of its parent's; remarks for people."""
    if not folder.listed(writer.files):
        return []
    call = writer.call
    entry = DeferredWrite(kind=TAKEN_OVER, key=call.key, at=call.at, data={"parent": parent})
    try:
        return write(writer, entry)
    except StoreRefuses as refusal:
        return [f"Not in the store: {refusal}"]


def fill(writer: Writer) -> list[str]:
    """Bring the store up to the workspace; answers with what is wrong with files in it.

    Raises:
        StoreAway: the store does not answer.
    """
    job, store = writer.call.job, writer.store
    listed = folder.listed(writer.files)
    present = {name: blob for name, (_, blob) in listed.items()}
    held = store.read(lambda connection: rows.held_blobs(connection, job))
    if held == present:
        return []
    problems: list[str] = []
    changed: list[tuple[Requirement, str]] = []
    for name, (path, blob) in listed.items():
        if held.get(name) != blob:
            try:
                changed.append((folder.read(writer.files, path, name, job), blob))
            except folder.Unusable as problem:
                problems.append(str(problem))
    store.run(lambda connection: rows.fill(connection, writer.call, present, changed))
    return problems


def bring_up(writer: Writer) -> list[str]:
    """The same, or deferred when the store does not answer."""
    # At most one of them: the last takes along what those before it would have.
    state = writer.state
    state.deferred_writes = [entry for entry in state.deferred_writes if entry.kind != FILLED]
    try:
        return [*flush(writer, "relational"), *fill(writer)]
    except StoreRefuses as refusal:
        return [f"Not in the store: {refusal}"]
    except StoreAway as error:
        entry = DeferredWrite(kind=FILLED, key=writer.call.key, at=writer.call.at)
        return defer(writer, entry, error)


def unstored(writer: Writer, *, filled: bool) -> tuple[list[str], list[tuple[DeferredWrite, str]]]:
    """Make what is deferred, and fill the store if asked.

    Returns:
        What is still missing, for the gate; and the writes that a store refuses, with why.

    Raises:
        StoreAway: a store does not answer.
    """
    try:
        _, refused = attempt(writer)
        problems = fill(writer) if filled else []
    except StoreRefuses as refusal:
        about = DeferredWrite(
            kind=FILLED, key=writer.call.key, at=writer.call.at, about="the requirements"
        )
        return [], [*refused, (about, str(refusal))]
    return problems[:MOST_NAMED], refused


def waits(writer: Writer, error: StoreAway) -> str:
    """`2 writes wait, since the store does not answer.`"""
    waiting = len(writer.state.deferred_writes) or 1
    return f"{waiting} {'write waits' if waiting == 1 else 'writes wait'}, since {error}"
