"""Requirements in the store: listed, searched and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, func, select

from activities.requirements.requirement import Requirement
from activities.requirements.requirement_rows import (
    R,
    find_requirement_row,
    load_requirement,
    requirement_from_row,
)
from activities.stores.schema import CITATIONS, REQUIREMENTS


@dataclass(frozen=True)
class KnownRequirement:
    """The fields compared when searching for similar requirements."""

    ref: str
    text: str
    status: str
    taken_by: str | None
    """The job that currently holds a draft to decide on it."""


def list_requirement_drafts(connection: Connection, jobs: Sequence[str]) -> list[tuple[str, str]]:
    """Return job and id of these jobs' undecided requirements."""
    condition = and_(R.job.in_(jobs), R.status == "draft", R.withdrawn.is_(False))
    return [(row.job, row.id) for row in connection.execute(select(R.job, R.id).where(condition))]


def list_live_requirements(connection: Connection) -> list[KnownRequirement]:
    """Return all requirements that are drafts or accepted, and not withdrawn."""
    query = (
        select(R.job, R.id, R.text, R.status, R.taken_by)
        .where(R.withdrawn.is_(False), R.status.in_(("draft", "accepted")))
        .order_by(R.job, R.id)
    )
    return [
        KnownRequirement(
            f"{row.job}/{row.id}", row.text, row.status,
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
        connection: In a transaction.
        job: Id of the job, or empty.
        status: Status, or empty.
        document: The end of the path of the first passage's document.
        withdrawn: Whether to include withdrawn requirements.
        refs: If given, only these.
    """
    query = select(REQUIREMENTS).order_by(R.job, func.length(R.id), R.id)
    for column, value in ((R.job, job), (R.status, status)):
        query = query.where(column == value) if value else query
    if not withdrawn:
        query = query.where(R.withdrawn.is_(False))
    if document:
        query = query.where(R.source.endswith(document, autoescape=True))
    if refs:
        query = query.where((R.job + "/" + R.id).in_(refs))
    rows = connection.execute(query).all()
    cited: dict[tuple[str, str], list[Row[Any]]] = {}
    jobs = sorted({row.job for row in rows})
    passages = select(CITATIONS).where(CITATIONS.c.job.in_(jobs)).order_by(CITATIONS.c.place)
    for passage in connection.execute(passages):
        cited.setdefault((passage.job, passage.requirement), []).append(passage)
    return [
        StoredRequirement(
            requirement_from_row(row, cited.get((row.job, row.id), [])),
            row.reasons,
            row.decided_by,
            row.withdrawn,
            row.withdrawn_by,
            row.withdrawn_why,
            row.restored_by,
            row.restored_why,
            row.suspect,
            row.owner,
            row.decided_at,
        )
        for row in rows
    ]


def find_requirement(connection: Connection, ref: str) -> Requirement | None:
    """Return the requirement with this `ref`; None if withdrawn."""
    row = find_requirement_row(connection, ref)
    return None if row is None or row.withdrawn else load_requirement(connection, row)
