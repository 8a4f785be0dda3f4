"""A person's review of a requirement in the store."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import Connection

from activities.requirements.requirement_rows import (
    FREE,
    R,
    find_requirement_row,
    reopen_duplicates,
    update_requirement_row,
)
from activities.stores.schema import storable_column_value
from activities.stores.store_errors import StoreRefusedError


def review_requirement(
    connection: Connection,
    ref: str,
    action: Literal["accept", "reject", "assign"],
    by: str,
    reason: str,
) -> str:
    """Record a person's word on a requirement and return what it is now.

    A decision takes it from the validator that holds it, and ends its suspicion. `by` is the
    reviewer, or for `assign` the owner.

    Raises:
        StoreRefusedError: It does not exist, or is withdrawn.
    """
    row = find_requirement_row(connection, ref, lock=True)
    if row is None or row.withdrawn:
        raise StoreRefusedError(f"there is no requirement {ref}, or it is withdrawn")
    if action == "assign":
        update_requirement_row(connection, row.job, row.id, {"owner": storable_column_value(by)})
        return f"assigned to {by}"
    status = "accepted" if action == "accept" else "rejected"
    decision = {
        "status": status,
        "reasons": storable_column_value(reason or "Accepted by a person."),
        "decided_by": by,
        "duplicate_of": None,
        "suspect": None,
    }
    update_requirement_row(connection, row.job, row.id, FREE | decision)
    if action == "reject":
        reopen_duplicates(connection, R.duplicate_of == ref)
    return status
