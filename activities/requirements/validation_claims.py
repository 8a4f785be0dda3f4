"""Validators' claims on requirements in the store, and decisions by them and by people.

One job at a time holds a requirement, and it is decided once.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    literal,
    not_,
    or_,
    select,
    tuple_,
    update,
)

from activities.requirements.requirement import Requirement, RequirementVerdict
from activities.requirements.requirement_store import (
    FREE,
    R,
    find_requirement_row,
    is_newest_write,
    load_requirement,
    reopen_duplicates,
    update_requirement_row,
)
from activities.stores.outbox import Call
from activities.stores.schema import REQUIREMENTS, storable_column_value
from activities.stores.store_errors import StoreRefusedError

FIRST = REQUIREMENTS.alias("first")
F = FIRST.c


@dataclass(frozen=True)
class DecidedRequirement:
    """The decision on a requirement."""

    ref: str
    text: str
    status: str
    reasons: str
    duplicate_of: str | None


@dataclass(frozen=True)
class DocumentsAtHand:
    """The documents of a validator: it judges only what it can look up."""

    paths: Sequence[str]
    digests: Sequence[str]

    @property
    def condition(self) -> ColumnElement[bool]:
        """Match the requirements whose source is here, in the version that was read."""
        names = [path.rpartition("/")[2] for path in self.paths]
        by_name = or_(
            R.source.in_(names), *(R.source.endswith(f"/{name}", autoescape=True) for name in names)
        )
        # In SQL NULL is neither in a list nor not in it, and the condition is negated too.
        known = and_(R.digest.is_not(None), R.digest.in_(self.digests))
        return or_(known, and_(R.digest.is_(None), by_name))


def claim_drafts(
    connection: Connection,
    call: Call,
    now: int,
    hours: float,
    at_hand: DocumentsAtHand,
    count: int = 1,
    before: Sequence[str] = (),
) -> list[Requirement]:
    """Claim the drafts this job already holds, then free ones, up to `count`.

    A draft that repeats an earlier one word for word is marked as its duplicate on the way.

    Args:
        now: Epoch milliseconds by the Temporal server: the clocks of two workers may differ by more
            than the claim lasts.
        hours: How long the claim lasts without another call.
        at_hand: The documents of the job; drafts from other documents are left to others.
        count: Most drafts that the job holds then.
        before: Earlier jobs with the same task that are over; their claims pass to this job.

    Raises:
        StoreRefusedError: A later call of the same job came first.
    """
    if not is_newest_write(connection, call):
        raise StoreRefusedError("A later call has taken this one's place.")
    draft = and_(R.status == "draft", R.withdrawn.is_(False))
    holders = (call.job, *before)
    held_drafts = (
        select(REQUIREMENTS).where(draft, R.taken_by.in_(holders)).order_by(R.at, R.job, R.id)
    )
    rows = list(connection.execute(held_drafts.limit(count)).all())
    while len(rows) < count:
        claimed = tuple_(R.job, R.id).in_([(row.job, row.id) for row in rows])
        following = (
            select(REQUIREMENTS)
            # A job does not judge its own requirements.
            .where(draft, _is_claim_free(holders, now), R.job != call.job, at_hand.condition)
            .where(not_(claimed) if rows else literal(True))
            .order_by(R.at, R.job, R.id)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        row = connection.execute(following).first()
        if row is None:
            break
        if first := _first_duplicate_of_claim(connection, row):
            _mark_claim_as_duplicate(connection, call, row, first)
        else:
            rows.append(row)
    claim = {
        "taken_by": call.job,
        "taken_key": call.key,
        "taken_until": now + int(hours * 3_600_000),
    }
    for row in rows:
        update_requirement_row(connection, row.job, row.id, claim)
    return [load_requirement(connection, row) for row in rows]


def _is_claim_free(holders: Sequence[str], now: int) -> ColumnElement[bool]:
    lapsed = and_(R.taken_by.not_in(holders), R.taken_until < now)
    return or_(R.taken_by.is_(None), lapsed)


def count_drafts_elsewhere(
    connection: Connection, jobs: Sequence[str], at_hand: DocumentsAtHand
) -> dict[str, int]:
    """Return how many drafts are from documents that are not at hand, by the document's name."""
    drafts = select(R.source).where(
        R.status == "draft", R.withdrawn.is_(False), R.job.not_in(jobs), not_(at_hand.condition)
    )
    names = Counter(row.source.rpartition("/")[2] for row in connection.execute(drafts))
    return dict(sorted(names.items()))


def find_claimed_ref(connection: Connection, job: str, id: str) -> str | None:
    """Return `other/REQ-001` if the job holds the draft of another job that has this id there."""
    is_claimed = and_(R.status == "draft", R.withdrawn.is_(False), R.taken_by == job)
    row = connection.execute(
        select(R.job, R.id).where(is_claimed, R.id == id, R.job != job).order_by(R.job).limit(1)
    ).first()
    return f"{row.job}/{row.id}" if row else None


def _claim_duplicate_condition(
    row: ColumnElement[str], place: ColumnElement[bool]
) -> ColumnElement[bool]:
    """Match another row with the same words that takes precedence over this one."""
    first = and_(F.said == row, F.withdrawn.is_(False))
    return and_(first, or_(F.status == "accepted", and_(F.status == "draft", place)))


def _first_duplicate_of_claim(connection: Connection, row: Row[Any]) -> Row[Any] | None:
    before = tuple_(F.at, F.job, F.id) < tuple_(literal(row.at), literal(row.job), literal(row.id))
    same = _claim_duplicate_condition(literal(row.said), before)
    other = or_(F.job != row.job, F.id != row.id)
    # Lock the original: it could be rejected meanwhile, and neither would remain.
    query = select(FIRST).where(same, other).order_by(F.status, F.at, F.job, F.id).limit(1)
    return connection.execute(query.with_for_update()).first()


def _mark_claim_as_duplicate(
    connection: Connection, call: Call, row: Row[Any], first: Row[Any]
) -> None:
    named = f"{first.job}/{first.id}"
    why = f"It says the same as {named}, word for word, of the same passage."
    values = _decision(call, "duplicate", why, named)
    update_requirement_row(connection, row.job, row.id, values)
    reopen_duplicates(connection, R.duplicate_of == f"{row.job}/{row.id}")


def _decision(call: Call, status: str, reasons: str, duplicate_of: str | None) -> dict[str, Any]:
    return {
        "status": status,
        "reasons": storable_column_value(reasons),
        "duplicate_of": duplicate_of,
        "decided_by": call.job,
        "decided_key": call.key,
        "decided_at": call.at,
        "suspect": None,
    }


def decide_claim(
    connection: Connection,
    call: Call,
    ref: str,
    status: RequirementVerdict,
    reasons: str,
    duplicate_of: str | None,
) -> None:
    """Record a validator's decision on the requirement that it holds.

    Raises:
        StoreRefusedError: The requirement does not exist, another job holds it, or it has changed.
    """
    # Lock both rows in a fixed order, or two calls naming each other's row would deadlock.
    rows = {
        name: find_requirement_row(connection, name, lock=True)
        for name in sorted({ref, duplicate_of or ref})
    }
    row = _find_claimed_requirement(rows[ref], call, ref)
    if row is None:
        return
    if duplicate_of is not None:
        if "/" not in duplicate_of:
            full = f"{row.job}/{duplicate_of}"
            raise StoreRefusedError(
                f"duplicate_of: name it with the job that made it, such as {full}."
            )
        _check_original_of_claim(rows[duplicate_of], duplicate_of)
    values = _decision(call, status, reasons, duplicate_of)
    update_requirement_row(connection, row.job, row.id, values)
    if status == "rejected":
        reopen_duplicates(connection, R.duplicate_of == ref)


def check_claim_undecided(connection: Connection, call: Call, ref: str) -> None:
    """Raise StoreRefusedError if this job may not decide on the requirement."""
    _find_claimed_requirement(find_requirement_row(connection, ref), call, ref)


def _find_claimed_requirement(row: Row[Any] | None, call: Call, ref: str) -> Row[Any] | None:
    """Return the requirement this job holds; None if this call or a later one has decided on it."""
    if row is None or row.withdrawn:
        raise StoreRefusedError(
            f"There is no requirement {ref} any more or yet; call take_requirement() for the next."
        )
    if row.decided_by == call.job and (row.decided_key == call.key or row.decided_at >= call.at):
        return None
    if row.taken_by != call.job or row.at > call.at:
        raise StoreRefusedError(
            f"{ref} is not held by this job, or changed since it was taken: call "
            "take_requirement() and decide on what it answers."
        )
    return row


def list_claim_decisions(
    connection: Connection, jobs: Sequence[str], now: int, at_hand: DocumentsAtHand
) -> tuple[list[DecidedRequirement], list[str], int]:
    """Return these jobs' decisions in order, without withdrawn requirements; the requirements
    they hold undecided; and how many drafts `claim_drafts` could give them now."""
    present = select(REQUIREMENTS).where(R.withdrawn.is_(False))
    decided = present.where(R.decided_by.in_(jobs), R.status != "draft")
    decisions = [
        DecidedRequirement(
            f"{row.job}/{row.id}", row.text, row.status, row.reasons, row.duplicate_of
        )
        for row in connection.execute(decided.order_by(R.decided_at, R.job, R.id))
    ]
    drafts = present.where(R.status == "draft").order_by(R.at, R.job, R.id)
    held_rows = connection.execute(drafts.where(R.taken_by.in_(jobs)))
    others = drafts.where(R.job.not_in(jobs), _is_claim_free(jobs, now), at_hand.condition)
    before = tuple_(F.at, F.job, F.id) < tuple_(R.at, R.job, R.id)
    itself = and_(F.job == R.job, F.id == R.id)
    double = select(F.id).where(_claim_duplicate_condition(R.said, before), not_(itself)).exists()
    free = connection.execute(others.where(not_(double)).with_only_columns(R.id)).all()
    return decisions, [f"{row.job}/{row.id}" for row in held_rows], len(free)


def _check_original_of_claim(other: Row[Any] | None, named: str) -> None:
    """Refuse an original that is missing, rejected or itself a duplicate: no copy would remain."""
    if other is None or other.withdrawn:
        raise StoreRefusedError(
            f"duplicate_of: there is no requirement {named} in the store; "
            "find_similar_requirements names those there are."
        )
    if other.status in ("duplicate", "rejected"):
        first = f" of {other.duplicate_of}, which may be named" if other.duplicate_of else ""
        raise StoreRefusedError(
            f"duplicate_of: {named} is {other.status} itself{first}. Else decide on this one by "
            "what it says."
        )


def release_claims(connection: Connection, call: Call) -> None:
    """Release undecided requirements the job holds, when the job ends."""
    if is_newest_write(connection, call):
        undecided = and_(R.taken_by == call.job, R.status == "draft")
        connection.execute(update(REQUIREMENTS).where(undecided).values(FREE))


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
