"""Rows of requirements in the store: read, updated, and guarded against late writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select, update
from sqlalchemy.dialects import postgresql, sqlite

from activities.requirements.requirement import Citation, Requirement
from activities.stores.outbox import Call
from activities.stores.schema import CITATIONS, JOBS, REQUIREMENTS

R = REQUIREMENTS.c
FIELDS = (
    *("text", "force", "type", "source", "reasoning", "confidence", "candidate"),
    *("digest", "rationale", "verification", "priority"),
)
FREE: dict[str, Any] = {"taken_by": None, "taken_key": None, "taken_until": None}
"""Column values of a row that no job holds."""
UNDECIDED = FREE | dict.fromkeys(
    ("reasons", "duplicate_of", "decided_by", "decided_key", "decided_at")
)
GONE = (
    FREE
    | {"withdrawn": True}
    | dict.fromkeys(("withdrawn_by", "withdrawn_why", "restored_by", "restored_why"))
)
"""Column values of a withdrawn row, to which a person's reason may be added."""


def find_requirement_row(
    connection: Connection, ref: str, *, lock: bool = False
) -> Row[Any] | None:
    """Return the row with this `ref`, even if withdrawn."""
    job, _, id = ref.rpartition("/")
    query = select(REQUIREMENTS).where(R.job == job, R.id == id)
    return connection.execute(query.with_for_update() if lock else query).first()


def reopen_duplicates(connection: Connection, same: ColumnElement[bool]) -> None:
    """Make duplicates of removed requirements drafts again, so that one of them can be accepted."""
    connection.execute(
        update(REQUIREMENTS)
        .where(R.status == "duplicate", same)
        .values(status="draft", **UNDECIDED)
    )


def update_requirement_row(
    connection: Connection, job: str, id: str, values: dict[str, Any]
) -> None:
    """Set these columns of one requirement."""
    connection.execute(update(REQUIREMENTS).where(R.job == job, R.id == id).values(values))


def is_newest_write(connection: Connection, call: Call) -> bool:
    """Return whether no later call of the job has written; lock out its other calls until the
    transaction ends.
    """
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    connection.execute(
        dialect.insert(JOBS).values(job=call.job, at=call.at).on_conflict_do_nothing()
    )
    row = select(JOBS.c.at).where(JOBS.c.job == call.job).with_for_update()
    if connection.execute(row).scalar_one() > call.at:
        return False
    connection.execute(update(JOBS).where(JOBS.c.job == call.job).values(at=call.at))
    return True


def load_requirement(connection: Connection, row: Row[Any]) -> Requirement:
    """Return the row's requirement with its citations."""
    cited = connection.execute(
        select(CITATIONS)
        .where(CITATIONS.c.job == row.job, CITATIONS.c.requirement == row.id)
        .order_by(CITATIONS.c.place)
    )
    return requirement_from_row(row, cited.all())


def requirement_from_row(row: Row[Any], cited: Sequence[Row[Any]]) -> Requirement:
    return Requirement(
        id=row.id,
        job=row.job,
        status=row.status,
        duplicate_of=row.duplicate_of,
        citations=[
            Citation(**{name: getattr(each, name) for name in Citation.model_fields})
            for each in cited
        ],
        **{name: getattr(row, name) for name in FIELDS},
    )
