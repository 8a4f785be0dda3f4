"""Requirements in the store: filled from workspaces, taken and decided by validators.

A job's rows are what its workspace holds: `fill` brings them up to it, whatever happened before,
so a retry doubles nothing and what a rewind undid is withdrawn. Each write says when its call was
scheduled; one that comes later than a newer one of the same job changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from activities.requirements.model import Citation, Requirement, Verdict
from activities.stores.away import StoreRefuses
from activities.stores.schema import CITATIONS, JOBS, REQUIREMENTS, storable

R = REQUIREMENTS.c
FIELDS = ("text", "type", "source", "reasoning", "confidence", "candidate")


@dataclass(frozen=True)
class Call:
    """Who writes: the job, the call's idempotency key, and when it was scheduled."""

    job: str
    key: str
    at: int
    """Epoch milliseconds, by the server that runs the jobs."""


@dataclass(frozen=True)
class Known:
    """What is compared when another is like it."""

    ref: str
    text: str
    status: str
    taken_by: str | None
    """The job that is to decide on it, while it is a draft."""


@dataclass(frozen=True)
class Decided:
    """What was decided on a requirement."""

    ref: str
    text: str
    status: str
    reasons: str
    duplicate_of: str | None


def held_blobs(connection: Connection, job: str) -> dict[str, str]:
    """The content that the store has of a job's requirements, by id; not what is withdrawn."""
    wanted = select(R.id, R.blob).where(R.job == job, R.withdrawn.is_(False))
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
    if not _first_in_line(connection, call):
        return
    rows = connection.execute(
        select(R.id, R.blob, R.withdrawn).where(R.job == call.job).with_for_update()
    )
    there = {row.id: row for row in rows}
    for gone in [id for id, row in there.items() if id not in present and not row.withdrawn]:
        _change(connection, call.job, gone, {"withdrawn": True, "at": call.at} | _FREE)
        _reopen(connection, R.duplicate_of == f"{call.job}/{gone}")
    for requirement, blob in changed:
        row = there.get(requirement.id)
        if row is not None and row.blob == blob:
            # It is back as it was, say by an undone rewind: what was decided on it holds.
            if row.withdrawn:
                _change(connection, call.job, requirement.id, {"withdrawn": False, "at": call.at})
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
        _reopen(connection, R.duplicate_of == f"{call.job}/{requirement.id}")
    said = requirement.model_dump(include=set(FIELDS))
    connection.execute(
        insert(REQUIREMENTS).values(
            job=call.job, id=requirement.id, status="draft", blob=blob, key=call.key, at=call.at,
            withdrawn=False, **{name: storable(value) for name, value in said.items()},
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


def drafts(connection: Connection, jobs: Sequence[str]) -> list[tuple[str, str]]:
    """Job and id of what these jobs left undecided."""
    left = and_(R.job.in_(jobs), R.status == "draft", R.withdrawn.is_(False))
    return [(row.job, row.id) for row in connection.execute(select(R.job, R.id).where(left))]


def supersede(connection: Connection, call: Call, before: Sequence[str]) -> None:
    """Withdraw the drafts of jobs that are over, and whose task the caller has now."""
    if _first_in_line(connection, call):
        for job, id in drafts(connection, before):
            _change(connection, job, id, {"withdrawn": True, "at": call.at} | _FREE)
            _reopen(connection, R.duplicate_of == f"{job}/{id}")


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


def take(
    connection: Connection, call: Call, now: int, hours: float, before: Sequence[str] = ()
) -> Requirement | None:
    """The draft that the job holds, else the next that nobody holds; None when there is none.

    Args:
        connection: In a transaction.
        call: Whose this is.
        now: Epoch milliseconds, by the server that runs the jobs: the clocks of two workers may
            differ by more than the hours for which it is taken.
        hours: How long it is held without another call.
        before: Jobs that are over and had the same task: what they hold is the job's.

    Raises:
        StoreRefuses: a later call of the same job was faster.
    """
    if not _first_in_line(connection, call):
        raise StoreRefuses("A later call has taken this one's place.")
    draft = and_(R.status == "draft", R.withdrawn.is_(False))
    holders = (call.job, *before)
    held = select(REQUIREMENTS).where(draft, R.taken_by.in_(holders)).order_by(R.at, R.job, R.id)
    free = or_(R.taken_by.is_(None), R.taken_until < now)
    following = (
        select(REQUIREMENTS)
        # A job does not judge its own.
        .where(draft, free, R.job != call.job)
        .order_by(R.at, R.job, R.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    row = connection.execute(held.limit(1)).first() or connection.execute(following).first()
    if row is None:
        return None
    taken = {
        "taken_by": call.job,
        "taken_key": call.key,
        "taken_until": now + int(hours * 3_600_000),
    }
    _change(connection, row.job, row.id, taken)
    return _requirement(connection, row)


def decide(
    connection: Connection,
    call: Call,
    ref: str,
    status: Verdict,
    reasons: str,
    duplicate_of: str | None,
) -> None:
    """Record what a validator found of the requirement that it holds.

    Raises:
        StoreRefuses: there is none of that name, another job holds it, or it has changed since.
    """
    # Both rows, always in the same order: two that each call the other a duplicate take turns.
    rows = {name: find(connection, name, lock=True) for name in sorted({ref, duplicate_of or ref})}
    row = rows[ref]
    if row is None or row.withdrawn:
        raise StoreRefuses(
            f"There is no requirement {ref} any more or yet; call take_requirement() for the next."
        )
    if row.decided_by == call.job and (row.decided_key == call.key or row.decided_at >= call.at):
        return
    if row.taken_by != call.job or row.at > call.at:
        raise StoreRefuses(
            f"{ref} is not held by this job, or changed since it was taken: call "
            "take_requirement() and decide on what it answers."
        )
    if duplicate_of is not None:
        if "/" not in duplicate_of:
            full = f"{row.job}/{duplicate_of}"
            raise StoreRefuses(f"duplicate_of: name it with the job that made it, such as {full}.")
        _check_other(rows[duplicate_of], duplicate_of)
    _change(
        connection,
        row.job,
        row.id,
        {
            "status": status,
            "reasons": storable(reasons),
            "duplicate_of": duplicate_of,
            "decided_by": call.job,
            "decided_key": call.key,
            "decided_at": call.at,
        },
    )
    if status == "rejected":
        _reopen(connection, R.duplicate_of == ref)


def decided(
    connection: Connection, jobs: Sequence[str], now: int
) -> tuple[list[Decided], list[str], int]:
    """What these jobs decided, in that order, but for what was withdrawn since; what they hold and
    have not decided; and how many drafts `take` would give them now."""
    there = select(REQUIREMENTS).where(R.withdrawn.is_(False))
    done = there.where(R.decided_by.in_(jobs), R.status != "draft")
    made = [
        Decided(f"{row.job}/{row.id}", row.text, row.status, row.reasons, row.duplicate_of)
        for row in connection.execute(done.order_by(R.decided_at, R.job, R.id))
    ]
    left = there.where(R.status == "draft").order_by(R.at, R.job, R.id)
    held = connection.execute(left.where(R.taken_by.in_(jobs)))
    lapsed = and_(R.taken_by.not_in(jobs), R.taken_until < now)
    others = left.where(R.job.not_in(jobs), or_(R.taken_by.is_(None), lapsed))
    free = connection.execute(others.with_only_columns(R.id)).all()
    return made, [f"{row.job}/{row.id}" for row in held], len(free)


def _check_other(other: Row[Any] | None, named: str) -> None:
    """Refuse what nothing can be a duplicate of, lest no one of them stays."""
    if other is None or other.withdrawn:
        raise StoreRefuses(
            f"duplicate_of: there is no requirement {named} in the store; "
            "find_similar_requirements names those there are."
        )
    if other.status in ("duplicate", "rejected"):
        first = f" of {other.duplicate_of}, which may be named" if other.duplicate_of else ""
        raise StoreRefuses(
            f"duplicate_of: {named} is {other.status} itself{first}. Else decide on this one by "
            "what it says."
        )


def release(connection: Connection, call: Call) -> None:
    """Give back what the job took and did not decide; for when it ends."""
    if _first_in_line(connection, call):
        undecided = and_(R.taken_by == call.job, R.status == "draft")
        connection.execute(update(REQUIREMENTS).where(undecided).values(_FREE))


def forget(connection: Connection, job: str) -> None:
    """Remove a job's requirements, with what was decided on them; late writes stay out."""
    # Named in full: another job's name may begin like this one's, or be the same in capitals.
    own = REQUIREMENTS.alias().c
    refs = select(own.job + "/" + own.id).where(own.job == job)
    _reopen(connection, R.duplicate_of.in_(refs))
    connection.execute(delete(CITATIONS).where(CITATIONS.c.job == job))
    connection.execute(delete(REQUIREMENTS).where(R.job == job))


def find(connection: Connection, ref: str, *, lock: bool = False) -> Row[Any] | None:
    """The row of that `ref`, also when it is withdrawn."""
    job, _, id = ref.rpartition("/")
    wanted = select(REQUIREMENTS).where(R.job == job, R.id == id)
    return connection.execute(wanted.with_for_update() if lock else wanted).first()


def named(connection: Connection, ref: str) -> Requirement | None:
    """The requirement of that `ref`, unless it is withdrawn."""
    row = find(connection, ref)
    return None if row is None or row.withdrawn else _requirement(connection, row)


def of_job(connection: Connection, job: str) -> list[Requirement]:
    """A job's requirements as the store has them, but for those withdrawn."""
    wanted = select(REQUIREMENTS).where(R.job == job, R.withdrawn.is_(False)).order_by(R.id)
    return [_requirement(connection, row) for row in connection.execute(wanted).all()]


_FREE: dict[str, Any] = {"taken_by": None, "taken_key": None, "taken_until": None}
_DRAFT = _FREE | dict.fromkeys(
    ("reasons", "duplicate_of", "decided_by", "decided_key", "decided_at")
)


def _reopen(connection: Connection, same: ColumnElement[bool]) -> None:
    """Make drafts again of the duplicates of what is not to stay, lest no one of them does."""
    connection.execute(
        update(REQUIREMENTS).where(R.status == "duplicate", same).values(status="draft", **_DRAFT)
    )


def _change(connection: Connection, job: str, id: str, values: dict[str, Any]) -> None:
    connection.execute(update(REQUIREMENTS).where(R.job == job, R.id == id).values(values))


def _first_in_line(connection: Connection, call: Call) -> bool:
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


def _requirement(connection: Connection, row: Row[Any]) -> Requirement:
    cited = connection.execute(
        select(CITATIONS)
        .where(CITATIONS.c.job == row.job, CITATIONS.c.requirement == row.id)
        .order_by(CITATIONS.c.place)
    )
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
