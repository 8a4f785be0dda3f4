"""Requirements in the store, filled from workspaces.

A job's rows mirror its workspace. `match_rows_to_workspace` updates them from any earlier state: a
retry duplicates nothing, and requirements removed by a rewind are withdrawn. Each write carries the
time when its call was scheduled; one that arrives after a newer one of the same job changes
nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from activities.requirements.requirement import Citation, Requirement
from activities.stores.outbox import Call
from activities.stores.schema import CITATIONS, JOBS, REQUIREMENTS, storable_column_value
from activities.stores.store_errors import StoreRefusedError

R = REQUIREMENTS.c
FIELDS = ("text", "force", "type", "source", "reasoning", "confidence", "candidate")
TAKEN_OVER = "taken over by the fork {}"
"""Why a draft of a fork's parent is withdrawn."""


@dataclass(frozen=True)
class KnownRequirement:
    """The fields compared when searching for similar requirements."""

    ref: str
    text: str
    status: str
    taken_by: str | None
    """The job that currently holds a draft to decide on it."""


def stored_requirement_blobs(connection: Connection, job: str) -> dict[str, str]:
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
        connection: In a transaction.
        call: The call that writes.
        present: Blob ids of all requirements of the workspace, by id.
        changed: Requirements that may differ from the stored ones, with their blob ids.
    """
    if not is_newest_requirement_call(connection, call):
        return
    rows = connection.execute(
        select(R.id, R.blob, R.withdrawn, R.withdrawn_why)
        .where(R.job == call.job)
        .with_for_update()
    )
    stored = {row.id: row for row in rows}
    for removed in [id for id, row in stored.items() if id not in present and not row.withdrawn]:
        update_requirement(connection, call.job, removed, _GONE | {"at": call.at})
        reopen_duplicates(connection, R.duplicate_of == f"{call.job}/{removed}")
    for requirement, blob in changed:
        row = stored.get(requirement.id)
        if row is not None and row.blob == blob:
            # Unchanged and present again, such as after an undone rewind: earlier decisions stay
            # valid.
            if row.withdrawn and row.withdrawn_why is None:
                update_requirement(
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
            withdrawn=False, said=stored_requirement_fingerprint(requirement),
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


def stored_requirement_fingerprint(requirement: Requirement) -> str:
    """Return a hash of text, first quote and document name, ignoring case and white space."""
    first = requirement.citations[0]
    name = first.url or first.document.rpartition("/")[2]
    words = [" ".join(text.split()).casefold() for text in (requirement.text, first.quote, name)]
    return hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()


def take_over_stored_requirements(
    connection: Connection, call: Call, parent: str, present: Mapping[str, str]
) -> None:
    """Withdraw drafts of a fork's parent that now belong to the fork.

    Args:
        connection: In a transaction.
        call: The fork's call.
        parent: The job it was forked from.
        present: As for `match_rows_to_workspace`, of the fork's workspace.
    """
    if not is_newest_requirement_call(connection, call):
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
        call: The fork's call.
        parent: The job it was forked from.
        present: As for `take_over`.
    """
    if not is_newest_requirement_call(connection, call):
        return
    by_name = and_(R.job == parent, R.withdrawn.is_(True), R.withdrawn_why.is_not(None))
    query = select(R.id, R.blob, R.withdrawn_by, R.withdrawn_why).where(by_name)
    for row in connection.execute(query).all():
        by_fork = row.withdrawn_why == TAKEN_OVER.format(row.withdrawn_by)
        if not by_fork and present.get(row.id) == row.blob:
            _withdraw_row(connection, call.job, row.id, row.withdrawn_by, row.withdrawn_why)


def withdraw_stored_requirement(connection: Connection, ref: str, by: str, why: str) -> str:
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
    update_requirement(connection, job, id, _GONE | reasons)
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
    anew = {"status": status, **_UNDECIDED} if status != row.status else {}
    update_requirement(connection, row.job, row.id, values | anew)
    return status


def list_requirement_drafts(connection: Connection, jobs: Sequence[str]) -> list[tuple[str, str]]:
    """Return job and id of these jobs' undecided requirements."""
    condition = and_(R.job.in_(jobs), R.status == "draft", R.withdrawn.is_(False))
    return [(row.job, row.id) for row in connection.execute(select(R.job, R.id).where(condition))]


def supersede_drafts(connection: Connection, call: Call, before: Sequence[str]) -> None:
    """Withdraw the drafts of ended jobs that the calling job replaces."""
    if is_newest_requirement_call(connection, call):
        for job, id in list_requirement_drafts(connection, before):
            update_requirement(connection, job, id, _GONE | {"at": call.at})
            reopen_duplicates(connection, R.duplicate_of == f"{job}/{id}")


def live_requirements_in_store(connection: Connection) -> list[KnownRequirement]:
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


def forget_stored_requirements(connection: Connection, job: str) -> None:
    """Delete a job's requirements and reopen their duplicates; late writes are ignored."""
    # Compare the full reference: job names may share a prefix or differ only in case.
    columns = REQUIREMENTS.alias().c
    refs = select(columns.job + "/" + columns.id).where(columns.job == job)
    reopen_duplicates(connection, R.duplicate_of.in_(refs))
    connection.execute(delete(CITATIONS).where(CITATIONS.c.job == job))
    connection.execute(delete(REQUIREMENTS).where(R.job == job))


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
            _requirement_from_row(row, cited.get((row.job, row.id), [])),
            row.reasons,
            row.decided_by,
            row.withdrawn,
            row.withdrawn_by,
            row.withdrawn_why,
            row.restored_by,
            row.restored_why,
        )
        for row in rows
    ]


def find_requirement_row(
    connection: Connection, ref: str, *, lock: bool = False
) -> Row[Any] | None:
    """Return the row with this `ref`, even if withdrawn."""
    job, _, id = ref.rpartition("/")
    query = select(REQUIREMENTS).where(R.job == job, R.id == id)
    return connection.execute(query.with_for_update() if lock else query).first()


def find_requirement(connection: Connection, ref: str) -> Requirement | None:
    """Return the requirement with this `ref`; None if withdrawn."""
    row = find_requirement_row(connection, ref)
    return None if row is None or row.withdrawn else load_stored_requirement(connection, row)


def job_requirements(connection: Connection, job: str) -> list[Requirement]:
    """Return a job's stored requirements, except withdrawn ones."""
    query = select(REQUIREMENTS).where(R.job == job, R.withdrawn.is_(False)).order_by(R.id)
    return [load_stored_requirement(connection, row) for row in connection.execute(query).all()]


FREE: dict[str, Any] = {"taken_by": None, "taken_key": None, "taken_until": None}
"""Column values of a row that no job holds."""
_UNDECIDED = FREE | dict.fromkeys(
    ("reasons", "duplicate_of", "decided_by", "decided_key", "decided_at")
)
_GONE = (
    FREE
    | {"withdrawn": True}
    | dict.fromkeys(("withdrawn_by", "withdrawn_why", "restored_by", "restored_why"))
)
"""Column values of a withdrawn row, to which a person's reason may be added."""


def reopen_duplicates(connection: Connection, same: ColumnElement[bool]) -> None:
    """Make duplicates of removed requirements drafts again, so that one of them can be accepted."""
    connection.execute(
        update(REQUIREMENTS)
        .where(R.status == "duplicate", same)
        .values(status="draft", **_UNDECIDED)
    )


def update_requirement(connection: Connection, job: str, id: str, values: dict[str, Any]) -> None:
    """Set these columns of one requirement."""
    connection.execute(update(REQUIREMENTS).where(R.job == job, R.id == id).values(values))


def is_newest_requirement_call(connection: Connection, call: Call) -> bool:
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


def load_stored_requirement(connection: Connection, row: Row[Any]) -> Requirement:
    """Return the row's requirement with its citations."""
    cited = connection.execute(
        select(CITATIONS)
        .where(CITATIONS.c.job == row.job, CITATIONS.c.requirement == row.id)
        .order_by(CITATIONS.c.place)
    )
    return _requirement_from_row(row, cited.all())


def _requirement_from_row(row: Row[Any], cited: Sequence[Row[Any]]) -> Requirement:
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
