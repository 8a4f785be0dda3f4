"""Requirements in the store, filled from workspaces.

A job's rows are what its workspace holds: `fill` brings them up to it, whatever happened before,
so a retry doubles nothing and what a rewind undid is withdrawn. Each write says when its call was
scheduled; one that comes later than a newer one of the same job changes nothing.
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
from activities.stores.errors import StoreRefuses
from activities.stores.outbox import Call
from activities.stores.schema import CITATIONS, JOBS, REQUIREMENTS, storable

R = REQUIREMENTS.c
FIELDS = ("text", "force", "type", "source", "reasoning", "confidence", "candidate")
TAKEN_OVER = "taken over by the fork {}"
"""Why a draft of a fork's parent is withdrawn."""


@dataclass(frozen=True)
class Known:
    """What is compared when another is like it."""

    ref: str
    text: str
    status: str
    taken_by: str | None
    """The job that is to decide on it, while it is a draft."""


def held_blobs(connection: Connection, job: str) -> dict[str, str]:
    """The content that the store has of a job's requirements, by id; of what is withdrawn only
    where that stays so."""
    kept = or_(R.withdrawn.is_(False), R.withdrawn_why.is_not(None))
    wanted = select(R.id, R.blob).where(R.job == job, kept)
    return {row.id: row.blob for row in connection.execute(wanted)}


def fill(
    connection: Connection,
    call: Call,
    present: Mapping[str, str],
    changed: Sequence[tuple[Requirement, str]],
) -> None:
    """Bring a job's rows up to its workspace.

    Args:
        connection: In a transaction.
        call: Whose write this is.
        present: Ids of all requirements of the workspace, with the blob id of each.
        changed: Those that the store may not have as they are now, with their blob ids.
    """
    if not first_in_line(connection, call):
        return
    rows = connection.execute(
        select(R.id, R.blob, R.withdrawn, R.withdrawn_why)
        .where(R.job == call.job)
        .with_for_update()
    )
    there = {row.id: row for row in rows}
    for gone in [id for id, row in there.items() if id not in present and not row.withdrawn]:
        change(connection, call.job, gone, {"withdrawn": True, "at": call.at} | FREE)
        reopen(connection, R.duplicate_of == f"{call.job}/{gone}")
    for requirement, blob in changed:
        row = there.get(requirement.id)
        if row is not None and row.blob == blob:
            # It is back as it was, say by an undone rewind: what was decided on it holds.
            if row.withdrawn and row.withdrawn_why is None:
                change(connection, call.job, requirement.id, {"withdrawn": False, "at": call.at})
        else:
            _put(connection, call, requirement, blob, replace=row is not None)


def _put(
    connection: Connection, call: Call, requirement: Requirement, blob: str, *, replace: bool
) -> None:
    if replace:
        # Another text under the same id is another requirement: decisions were on the old one.
        for table, column in ((CITATIONS, CITATIONS.c.requirement), (REQUIREMENTS, R.id)):
            connection.execute(
                delete(table).where(table.c.job == call.job, column == requirement.id)
            )
        reopen(connection, R.duplicate_of == f"{call.job}/{requirement.id}")
    content = requirement.model_dump(include=set(FIELDS))
    connection.execute(
        insert(REQUIREMENTS).values(
            job=call.job, id=requirement.id, status="draft", blob=blob, key=call.key, at=call.at,
            withdrawn=False, said=fingerprint(requirement),
            **{name: storable(value) for name, value in content.items()},
        )
    )  # fmt: skip
    connection.execute(
        insert(CITATIONS),
        [
            {"job": call.job, "requirement": requirement.id, "place": place}
            | {name: storable(value) for name, value in citation.model_dump().items()}
            for place, citation in enumerate(requirement.citations)
        ],
    )


def fingerprint(requirement: Requirement) -> str:
    """The same for two that say the same, word for word, of the same passage."""
    first = requirement.citations[0]
    name = first.url or first.document.rpartition("/")[2]
    said = [" ".join(text.split()).casefold() for text in (requirement.text, first.quote, name)]
    return hashlib.sha256("\0".join(said).encode(errors="replace")).hexdigest()


def take_over(connection: Connection, call: Call, parent: str, present: Mapping[str, str]) -> None:
    """Withdraw the drafts of a fork's parent that are the fork's from now on.

    Args:
        connection: In a transaction.
        call: The fork's.
        parent: The job it was forked from.
        present: As for `fill`: what of the fork's workspace has the same content is the same.
    """
    if not first_in_line(connection, call):
        return
    left = and_(R.job == parent, R.status == "draft", R.withdrawn.is_(False))
    for row in connection.execute(select(R.id, R.blob).where(left).with_for_update()).all():
        if present.get(row.id) == row.blob:
            _withdraw(connection, parent, row.id, call.job, TAKEN_OVER.format(call.job))


def withdraw_as_parent(
    connection: Connection, call: Call, parent: str, present: Mapping[str, str]
) -> None:
    """Withdraw what the fork has unchanged and a person withdrew of its parent.

    Args:
        connection: In a transaction, after the fork's rows were filled.
        call: The fork's.
        parent: The job it was forked from.
        present: As for `take_over`.
    """
    if not first_in_line(connection, call):
        return
    by_name = and_(R.job == parent, R.withdrawn.is_(True), R.withdrawn_why.is_not(None))
    wanted = select(R.id, R.blob, R.withdrawn_by, R.withdrawn_why).where(by_name)
    for row in connection.execute(wanted).all():
        by_fork = row.withdrawn_why == TAKEN_OVER.format(row.withdrawn_by)
        if not by_fork and present.get(row.id) == row.blob:
            _withdraw(connection, call.job, row.id, row.withdrawn_by, row.withdrawn_why)


def withdraw(connection: Connection, ref: str, by: str, why: str) -> str:
    """Withdraw a requirement for good, whatever its workspace says; the status that it had.

    Raises:
        StoreRefuses: there is none of that name, or it is withdrawn already.
    """
    row = find(connection, ref, lock=True)
    if row is None:
        raise StoreRefuses(f"there is no requirement {ref}")
    if row.withdrawn and row.withdrawn_why is not None:
        raise StoreRefuses(
            f"{ref} is withdrawn already, by {row.withdrawn_by}: {row.withdrawn_why}"
        )
    _withdraw(connection, row.job, row.id, by, why)
    return str(row.status)


def _withdraw(connection: Connection, job: str, id: str, by: str, why: str) -> None:
    reasons = {"withdrawn": True, "withdrawn_by": by, "withdrawn_why": storable(why)}
    change(connection, job, id, reasons | FREE)
    reopen(connection, R.duplicate_of == f"{job}/{id}")


def drafts(connection: Connection, jobs: Sequence[str]) -> list[tuple[str, str]]:
    """Job and id of what these jobs left undecided."""
    left = and_(R.job.in_(jobs), R.status == "draft", R.withdrawn.is_(False))
    return [(row.job, row.id) for row in connection.execute(select(R.job, R.id).where(left))]


def supersede(connection: Connection, call: Call, before: Sequence[str]) -> None:
    """Withdraw the drafts of jobs that are over, and whose task the caller has now."""
    if first_in_line(connection, call):
        for job, id in drafts(connection, before):
            change(connection, job, id, {"withdrawn": True, "at": call.at} | FREE)
            reopen(connection, R.duplicate_of == f"{job}/{id}")


def known(connection: Connection) -> list[Known]:
    """All requirements but those withdrawn, rejected or said to be duplicates."""
    wanted = (
        select(R.job, R.id, R.text, R.status, R.taken_by)
        .where(R.withdrawn.is_(False), R.status.in_(("draft", "accepted")))
        .order_by(R.job, R.id)
    )
    return [
        Known(
            f"{row.job}/{row.id}", row.text, row.status,
            row.taken_by if row.status == "draft" else None,
        )
        for row in connection.execute(wanted)
    ]  # fmt: skip


def forget(connection: Connection, job: str) -> None:
    """Remove a job's requirements, with what was decided on them; late writes stay out."""
    # Named in full: another job's name may begin like this one's, or be the same in capitals.
    own = REQUIREMENTS.alias().c
    refs = select(own.job + "/" + own.id).where(own.job == job)
    reopen(connection, R.duplicate_of.in_(refs))
    connection.execute(delete(CITATIONS).where(CITATIONS.c.job == job))
    connection.execute(delete(REQUIREMENTS).where(R.job == job))


@dataclass(frozen=True)
class Stored:
    """A requirement with what became of it."""

    requirement: Requirement
    reasons: str | None
    decided_by: str | None
    withdrawn: bool
    withdrawn_by: str | None
    withdrawn_why: str | None


def search(
    connection: Connection,
    *,
    job: str = "",
    status: str = "",
    document: str = "",
    withdrawn: bool = False,
    refs: Sequence[str] = (),
) -> list[Stored]:
    """What the store holds of which all that is given is true, by job and id.

    Args:
        connection: In a transaction.
        job: Whose.
        status: Which.
        document: The end of the path of the first passage's document.
        withdrawn: Whether those that are withdrawn are among them.
        refs: Only these.
    """
    wanted = select(REQUIREMENTS).order_by(R.job, func.length(R.id), R.id)
    for column, value in ((R.job, job), (R.status, status)):
        wanted = wanted.where(column == value) if value else wanted
    if not withdrawn:
        wanted = wanted.where(R.withdrawn.is_(False))
    if document:
        wanted = wanted.where(R.source.endswith(document, autoescape=True))
    if refs:
        wanted = wanted.where((R.job + "/" + R.id).in_(refs))
    found = connection.execute(wanted).all()
    cited: dict[tuple[str, str], list[Row[Any]]] = {}
    jobs = sorted({row.job for row in found})
    passages = select(CITATIONS).where(CITATIONS.c.job.in_(jobs)).order_by(CITATIONS.c.place)
    for passage in connection.execute(passages):
        cited.setdefault((passage.job, passage.requirement), []).append(passage)
    return [
        Stored(
            _requirement(row, cited.get((row.job, row.id), [])),
            row.reasons,
            row.decided_by,
            row.withdrawn,
            row.withdrawn_by,
            row.withdrawn_why,
        )
        for row in found
    ]


def find(connection: Connection, ref: str, *, lock: bool = False) -> Row[Any] | None:
    """The row of that `ref`, also when it is withdrawn."""
    job, _, id = ref.rpartition("/")
    wanted = select(REQUIREMENTS).where(R.job == job, R.id == id)
    return connection.execute(wanted.with_for_update() if lock else wanted).first()


def named(connection: Connection, ref: str) -> Requirement | None:
    """The requirement of that `ref`, unless it is withdrawn."""
    row = find(connection, ref)
    return None if row is None or row.withdrawn else as_requirement(connection, row)


def of_job(connection: Connection, job: str) -> list[Requirement]:
    """A job's requirements as the store has them, but for those withdrawn."""
    wanted = select(REQUIREMENTS).where(R.job == job, R.withdrawn.is_(False)).order_by(R.id)
    return [as_requirement(connection, row) for row in connection.execute(wanted).all()]


FREE: dict[str, Any] = {"taken_by": None, "taken_key": None, "taken_until": None}
"""What a row says that nobody has taken."""
_DRAFT = FREE | dict.fromkeys(
    ("reasons", "duplicate_of", "decided_by", "decided_key", "decided_at")
)


def reopen(connection: Connection, same: ColumnElement[bool]) -> None:
    """Make drafts again of the duplicates of what is not to stay, lest no one of them does."""
    connection.execute(
        update(REQUIREMENTS).where(R.status == "duplicate", same).values(status="draft", **_DRAFT)
    )


def change(connection: Connection, job: str, id: str, values: dict[str, Any]) -> None:
    """Give one requirement these values."""
    connection.execute(update(REQUIREMENTS).where(R.job == job, R.id == id).values(values))


def first_in_line(connection: Connection, call: Call) -> bool:
    """Whether no later call of the job was here; keeps others of the job out until the end."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    connection.execute(
        dialect.insert(JOBS).values(job=call.job, at=call.at).on_conflict_do_nothing()
    )
    here = select(JOBS.c.at).where(JOBS.c.job == call.job).with_for_update()
    if connection.execute(here).scalar_one() > call.at:
        return False
    connection.execute(update(JOBS).where(JOBS.c.job == call.job).values(at=call.at))
    return True


def as_requirement(connection: Connection, row: Row[Any]) -> Requirement:
    """The requirement of a row, with its citations."""
    cited = connection.execute(
        select(CITATIONS)
        .where(CITATIONS.c.job == row.job, CITATIONS.c.requirement == row.id)
        .order_by(CITATIONS.c.place)
    )
    return _requirement(row, cited.all())


def _requirement(row: Row[Any], cited: Sequence[Row[Any]]) -> Requirement:
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
