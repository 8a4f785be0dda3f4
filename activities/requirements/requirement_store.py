"""Requirements in the store: read, searched, updated, and guarded against late writes."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, select, update
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


@dataclass(frozen=True)
class ComparableRequirement:
    """A requirement with which a statement is compared."""

    ref: str
    status: str
    text: str
    taken_by: str | None = None
    """The job that currently holds a draft to decide on it."""


def list_requirement_drafts(connection: Connection, jobs: Sequence[str]) -> list[tuple[str, str]]:
    condition = and_(R.job.in_(jobs), R.status == "draft", R.withdrawn.is_(False))
    return [(row.job, row.id) for row in connection.execute(select(R.job, R.id).where(condition))]


def list_live_requirements(connection: Connection) -> list[ComparableRequirement]:
    """Return all requirements that are drafts or accepted, and not withdrawn."""
    query = (
        select(R.job, R.id, R.text, R.status, R.taken_by)
        .where(R.withdrawn.is_(False), R.status.in_(("draft", "accepted")))
        .order_by(R.job, R.id)
    )
    return [
        ComparableRequirement(
            f"{row.job}/{row.id}", row.status, row.text,
            row.taken_by if row.status == "draft" else None,
        )
        for row in connection.execute(query)
    ]  # fmt: skip


@dataclass(frozen=True)
class StoredRequirement:
    """A requirement with the decision on it, and who withdrew or restored it."""

    requirement: Requirement
    reasons: str | None
    decided_by: str | None
    withdrawn: bool
    withdrawn_by: str | None
    withdrawn_why: str | None
    restored_by: str | None
    restored_why: str | None
    suspect: str | None = None
    """Why it may no longer hold."""
    owner: str | None = None
    """The person it is assigned to."""
    decided_at: int | None = None
    """When it was decided, in epoch milliseconds."""


def search_requirement_store(
    connection: Connection,
    *,
    job: str = "",
    status: str = "",
    document: str = "",
    withdrawn: bool = False,
    refs: Sequence[str] = (),
) -> list[StoredRequirement]:
    """Return the requirements that match all given conditions, ordered by job and id.

    Args:
        document: The end of the path of a passage's document.
        refs: If given, only these.
    """
    query = select(REQUIREMENTS).order_by(R.job, func.length(R.id), R.id)
    for column, value in ((R.job, job), (R.status, status)):
        query = query.where(column == value) if value else query
    if not withdrawn:
        query = query.where(R.withdrawn.is_(False))
    if document:
        of_row = and_(CITATIONS.c.job == R.job, CITATIONS.c.requirement == R.id)
        of_document = CITATIONS.c.document.endswith(document, autoescape=True)
        query = query.where(select(CITATIONS.c.place).where(of_row, of_document).exists())
    if refs:
        query = query.where((R.job + "/" + R.id).in_(refs))
    rows = connection.execute(query).all()
    cited: dict[tuple[str, str], list[Row[Any]]] = {}
    jobs = sorted({row.job for row in rows})
    passages = select(CITATIONS).where(CITATIONS.c.job.in_(jobs)).order_by(CITATIONS.c.place)
    for passage in connection.execute(passages):
        cited.setdefault((passage.job, passage.requirement), []).append(passage)
    names = [each.name for each in fields(StoredRequirement)][1:]
    return [
        StoredRequirement(
            requirement_from_row(row, cited.get((row.job, row.id), [])),
            **{name: getattr(row, name) for name in names},
        )
        for row in rows
    ]


def find_requirement(connection: Connection, ref: str) -> Requirement | None:
    """Return the requirement with this `ref`; None if withdrawn."""
    row = find_requirement_row(connection, ref)
    return None if row is None or row.withdrawn else load_requirement(connection, row)
