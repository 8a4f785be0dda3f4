"""Withdrawal of requirements from the store: by a person, a fork or a successor."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, and_, select

from activities.requirements.requirement_store import (
    GONE,
    UNDECIDED,
    R,
    find_requirement_row,
    is_newest_write,
    list_requirement_drafts,
    reopen_duplicates,
    update_requirement_row,
)
from activities.stores.outbox import Call
from activities.stores.schema import storable_column_value
from activities.stores.store_errors import StoreRefusedError

TAKEN_OVER = "taken over by the fork {}"
"""Why a draft of a fork's parent is withdrawn."""


def take_over_requirements(
    connection: Connection, call: Call, parent: str, present: Mapping[str, str]
) -> None:
    """Withdraw drafts of a fork's parent that now belong to the fork.

    Args:
        parent: The job it was forked from.
        present: As for `match_rows_to_workspace`, of the fork's workspace.
    """
    if not is_newest_write(connection, call):
        return
    drafts = and_(R.job == parent, R.status == "draft", R.withdrawn.is_(False))
    for row in connection.execute(select(R.id, R.blob).where(drafts).with_for_update()).all():
        if present.get(row.id) == row.blob:
            _withdraw_row(connection, parent, row.id, call.job, TAKEN_OVER.format(call.job))


def withdraw_what_parent_withdrew(
    connection: Connection, call: Call, parent: str, present: Mapping[str, str]
) -> None:
    """Withdraw the fork's unchanged copies of requirements that a person withdrew from its parent.

    Args:
        connection: In a transaction, after the fork's rows were filled.
        present: As for `take_over_requirements`.
    """
    if not is_newest_write(connection, call):
        return
    by_name = and_(R.job == parent, R.withdrawn.is_(True), R.withdrawn_why.is_not(None))
    query = select(R.id, R.blob, R.withdrawn_by, R.withdrawn_why).where(by_name)
    for row in connection.execute(query).all():
        by_fork = row.withdrawn_why == TAKEN_OVER.format(row.withdrawn_by)
        if not by_fork and present.get(row.id) == row.blob:
            _withdraw_row(connection, call.job, row.id, row.withdrawn_by, row.withdrawn_why)


def withdraw_requirement(connection: Connection, ref: str, by: str, why: str) -> str:
    """Withdraw a requirement for good, whatever its workspace contains; return its earlier status.

    Raises:
        StoreRefusedError: It does not exist, or is withdrawn already.
    """
    row = find_requirement_row(connection, ref, lock=True)
    if row is None:
        raise StoreRefusedError(f"there is no requirement {ref}")
    if row.withdrawn and row.withdrawn_why is not None:
        raise StoreRefusedError(
            f"{ref} is withdrawn already, by {row.withdrawn_by}: {row.withdrawn_why}"
        )
    _withdraw_row(connection, row.job, row.id, by, why)
    return str(row.status)


def _withdraw_row(connection: Connection, job: str, id: str, by: str, why: str) -> None:
    reasons = {"withdrawn_by": by, "withdrawn_why": storable_column_value(why)}
    update_requirement_row(connection, job, id, GONE | reasons)
    reopen_duplicates(connection, R.duplicate_of == f"{job}/{id}")


def restore_requirement(connection: Connection, ref: str, by: str, why: str) -> str:
    """Undo a person's withdrawal; return the requirement's new status.

    An accepted requirement becomes a draft, since the graph no longer has it.

    Raises:
        StoreRefusedError: It does not exist, or no person has withdrawn it.
    """
    row = find_requirement_row(connection, ref, lock=True)
    if row is None:
        raise StoreRefusedError(f"there is no requirement {ref}")
    if not row.withdrawn:
        raise StoreRefusedError(f"{ref} is not withdrawn")
    if row.withdrawn_why is None:
        raise StoreRefusedError(
            f"{ref} is no longer in the workspace of {row.job}; undo the rewind that took it out"
        )
    if row.withdrawn_why == TAKEN_OVER.format(row.withdrawn_by):
        raise StoreRefusedError(
            f"{ref} is {row.withdrawn_why}, where it is {row.withdrawn_by}/{row.id}"
        )
    status = "draft" if row.status == "accepted" else str(row.status)
    values = {"withdrawn": False, "restored_by": by, "restored_why": storable_column_value(why)}
    anew = {"status": status, **UNDECIDED} if status != row.status else {}
    update_requirement_row(connection, row.job, row.id, values | anew)
    return status


def supersede_drafts(connection: Connection, call: Call, before: Sequence[str]) -> None:
    """Withdraw the drafts of ended jobs that the calling job replaces."""
    if is_newest_write(connection, call):
        for job, id in list_requirement_drafts(connection, before):
            update_requirement_row(connection, job, id, GONE | {"at": call.at})
            reopen_duplicates(connection, R.duplicate_of == f"{job}/{id}")
