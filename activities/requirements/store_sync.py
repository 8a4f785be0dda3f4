"""Synchronise a workspace's requirements to the store, in a job's work and at its turns.

A job's rows mirror its workspace. `match_rows_to_workspace` updates them from any earlier state: a
retry duplicates nothing, and requirements removed by a rewind are withdrawn. Each write carries the
time when its call was scheduled; one that arrives after a newer one of the same job changes
nothing.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, insert, or_, select
from temporalio import activity

from activities.checkpoints import Root
from activities.job.snapshot import Snapshot
from activities.requirements import requirement_files, requirement_withdrawal, validation_claims
from activities.requirements import requirement_store as rows
from activities.requirements.graph import graph_writes  # noqa: F401 - registers the maker of graph writes
from activities.requirements.requirement import Requirement, requirement_fingerprint
from activities.requirements.requirement_store import (
    FIELDS,
    GONE,
    R,
    is_newest_write,
    reopen_duplicates,
    update_requirement_row,
)
from activities.runtime.activity_info import (
    activity_effect_key,
    activity_job_id,
    activity_schedule_ms,
)
from activities.stores.outbox import (
    Call,
    OutboxWriter,
    attempt_outbox_writes,
    defer_write,
    flush_outbox,
    register_outbox_maker,
    waiting_writes_message,
    write_or_defer,
)
from activities.stores.schema import CITATIONS, REQUIREMENTS, storable_column_value
from activities.stores.store_errors import StoreRefusedError, StoreUnavailableError
from activities.toolkit.agent_tools import agent_has_tool
from protocol.endings import GateFacts, Outcome
from protocol.job_state import DeferredWrite

FILLED = "requirements"
DECIDED = "decision"
TAKEN_OVER = "takeover"
MAX_NAMED = 5
MAX_REFUSED_NAMED = 10
RELEASE_SECONDS = 2.0
"""Claims expire by themselves, so the end of a job waits no longer for a hanging store."""


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
    writer.store.run(
        lambda c: requirement_withdrawal.take_over_requirements(c, writer.call, parent, present)
    )
    problems = sync_requirement_store(writer)
    writer.store.run(
        lambda c: requirement_withdrawal.withdraw_what_parent_withdrew(
            c, writer.call, parent, present
        )
    )
    return problems


def sync_requirement_store(writer: OutboxWriter) -> list[str]:
    """Bring the store up to date with the workspace; return problems with files in it.

    Raises:
        StoreUnavailableError: The store does not answer.
    """
    job, store = writer.call.job, writer.store
    listed = requirement_files.list_requirement_files(writer.files)
    present = {name: blob for name, (_, blob) in listed.items()}
    stored = store.read(lambda connection: stored_blobs(connection, job))
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
    store.run(lambda connection: match_rows_to_workspace(connection, writer.call, present, changed))
    return problems


def sync_store_or_defer(writer: OutboxWriter) -> list[str]:
    """Like `sync_requirement_store`, but deferred if the store does not answer."""
    # Keep at most one such entry: filling covers all earlier changes.
    state = writer.state
    requirement_files.note_requirement_numbers(state, writer.files)
    state.deferred_writes = [entry for entry in state.deferred_writes if entry.kind != FILLED]
    try:
        return [*flush_outbox(writer, "relational"), *sync_requirement_store(writer)]
    except StoreRefusedError as refusal:
        return [f"Not in the store: {refusal}"]
    except StoreUnavailableError as error:
        entry = DeferredWrite(kind=FILLED, key=writer.call.key, at=writer.call.at)
        return defer_write(writer, entry, error)


def stored_blobs(connection: Connection, job: str) -> dict[str, str]:
    """Return the blob ids of a job's stored requirements, by id.

    Includes withdrawn ones only if a person or a fork withdrew them, since those stay withdrawn.
    """
    condition = or_(R.withdrawn.is_(False), R.withdrawn_why.is_not(None))
    query = select(R.id, R.blob).where(R.job == job, condition)
    return {row.id: row.blob for row in connection.execute(query)}


def match_rows_to_workspace(
    connection: Connection,
    call: Call,
    present: Mapping[str, str],
    changed: Sequence[tuple[Requirement, str]],
) -> None:
    """Make a job's rows match its workspace.

    Args:
        present: Blob ids of all requirements of the workspace, by id.
        changed: Requirements that may differ from the stored ones, with their blob ids.
    """
    if not is_newest_write(connection, call):
        return
    rows = connection.execute(
        select(R.id, R.blob, R.withdrawn, R.withdrawn_why)
        .where(R.job == call.job)
        .with_for_update()
    )
    stored = {row.id: row for row in rows}
    for removed in [id for id, row in stored.items() if id not in present and not row.withdrawn]:
        update_requirement_row(connection, call.job, removed, GONE | {"at": call.at})
        reopen_duplicates(connection, R.duplicate_of == f"{call.job}/{removed}")
    for requirement, blob in changed:
        row = stored.get(requirement.id)
        if row is not None and row.blob == blob:
            # Unchanged and present again, such as after an undone rewind: earlier decisions stay
            # valid.
            if row.withdrawn and row.withdrawn_why is None:
                update_requirement_row(
                    connection, call.job, requirement.id, {"withdrawn": False, "at": call.at}
                )
        else:
            _store_requirement(connection, call, requirement, blob, replace=row is not None)


def _store_requirement(
    connection: Connection, call: Call, requirement: Requirement, blob: str, *, replace: bool
) -> None:
    if replace:
        # Another text under the same id is a new requirement; decisions applied to the old one.
        for table, column in ((CITATIONS, CITATIONS.c.requirement), (REQUIREMENTS, R.id)):
            connection.execute(
                delete(table).where(table.c.job == call.job, column == requirement.id)
            )
        reopen_duplicates(connection, R.duplicate_of == f"{call.job}/{requirement.id}")
    content = requirement.model_dump(include=set(FIELDS))
    connection.execute(
        insert(REQUIREMENTS).values(
            job=call.job, id=requirement.id, status="draft", blob=blob, key=call.key, at=call.at,
            withdrawn=False, said=requirement_fingerprint(requirement),
            **{name: storable_column_value(value) for name, value in content.items()},
        )
    )  # fmt: skip
    connection.execute(
        insert(CITATIONS),
        [
            {"job": call.job, "requirement": requirement.id, "place": place}
            | {name: storable_column_value(value) for name, value in citation.model_dump().items()}
            for place, citation in enumerate(requirement.citations)
        ],
    )


# Turns of a job: rewind, fork, replacement, end, forgetting. Remarks for people are returned.


def _job_store_writer(root: Root, snapshot: Snapshot) -> OutboxWriter:
    call = Call(activity_job_id(), activity_effect_key(), activity_schedule_ms())
    return OutboxWriter(root, call, snapshot.files, snapshot.state, snapshot.config)


def update_store_after_rewind(root: Root, snapshot: Snapshot) -> list[str]:
    """Withdraw requirements a rewind removed from the workspace; restore those it brought back."""
    return sync_store_or_defer(_job_store_writer(root, snapshot))


def update_store_after_fork(root: Root, snapshot: Snapshot, parent: str) -> list[str]:
    """Make a fork's drafts replace its parent's, or the store would have them twice."""
    writer = _job_store_writer(root, snapshot)
    if not requirement_files.list_requirement_files(writer.files):
        return []
    call = writer.call
    entry = DeferredWrite(kind=TAKEN_OVER, key=call.key, at=call.at, data={"parent": parent})
    try:
        return write_or_defer(writer, entry)
    except StoreRefusedError as refusal:
        return [f"Not in the store: {refusal}"]


def update_store_after_replacement(
    root: Root, snapshot: Snapshot, before: Sequence[str]
) -> list[str]:
    """Supersede the undecided drafts of earlier jobs that this job replaces in its project;
    otherwise its own drafts would be marked as their duplicates.
    """
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
    refused: list[tuple[str, str]] = []
    try:
        refused = [(entry.about, str(why)) for entry, why in attempt_outbox_writes(writer)[1]]
        problems = sync_requirement_store(writer) if keeps else []
        facts.unstored = problems[:MAX_NAMED]
    except StoreRefusedError as refusal:
        refused.append(("the requirements", str(refusal)))
    except StoreUnavailableError as error:
        facts.unstored = [waiting_writes_message(writer, error).rstrip(".")]
        facts.store_unavailable = True
        return
    facts.refused_writes = [f"{about}: {why}"[:300] for about, why in refused][:MAX_REFUSED_NAMED]
    facts.unexplained_writes = [about for about, _ in refused]


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
