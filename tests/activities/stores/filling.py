"""Requirements for the store, without a workspace."""

import hashlib
from collections.abc import Sequence

from sqlalchemy import Connection, select

from activities.requirements import store_sync, validation_claims
from activities.requirements.requirement import Citation, Requirement
from activities.requirements.requirement_store import R, load_requirement
from activities.stores.outbox import Call
from activities.stores.relational_store import RelationalStore
from activities.stores.schema import REQUIREMENTS

AT = 1_700_000_000_000


def call(job: str, at: int = 0, key: str = "") -> Call:
    return Call(job, key or f"run.{at}", AT + at)


def requirement(number: int, text: str = "", job: str = "maker") -> Requirement:
    statement = text or f"The system shall keep record number {number}."
    cited = Citation(id=f"CIT-{number:04d}", document="documents/a.md", page=1, quote=statement)
    return Requirement(
        id=f"REQ-{number:03d}", job=job, text=statement, type="data", source=cited.document,
        citations=[cited], reasoning="It says so.", confidence=0.9,
    )  # fmt: skip


def fill(
    store: RelationalStore,
    requirements: Sequence[Requirement],
    at: int = 0,
    job: str = "maker",
    key: str = "",
) -> None:
    """Make the job's workspace contain exactly these requirements."""
    store.run(
        lambda connection: store_sync.match_rows_to_workspace(
            connection, call(job, at, key), *contents(requirements)
        )
    )


def contents(
    requirements: Sequence[Requirement],
) -> tuple[dict[str, str], list[tuple[Requirement, str]]]:
    blobs = {each.id: hashlib.sha1(each.final_json.encode()).hexdigest() for each in requirements}
    return blobs, [(each, blobs[each.id]) for each in requirements]


AT_HAND = validation_claims.DocumentsAtHand(["documents/a.md"], [])


def take(
    store: RelationalStore, job: str, at: int = 0, hours: float = 24, digest: str = ""
) -> str | None:
    at_hand = validation_claims.DocumentsAtHand(AT_HAND.paths, [digest])
    claims = store.run(
        lambda connection: validation_claims.claim_drafts(
            connection, call(job, at), AT, hours, at_hand
        )
    )
    return claims[0].ref if claims else None


def decide(
    store: RelationalStore,
    job: str,
    ref: str,
    status: str = "accepted",
    at: int = 0,
    key: str = "",
    other: str | None = None,
) -> None:
    store.run(
        lambda connection: validation_claims.decide_claim(
            connection,
            call(job, at, key),
            ref,
            status,  # type: ignore[arg-type]
            "Because.",
            other,
        )
    )


def statuses(store: RelationalStore, job: str = "maker") -> dict[str, str]:
    return {each.id: each.status for each in store.run(lambda c: list_job_requirements(c, job))}


def list_job_requirements(connection: Connection, job: str) -> list[Requirement]:
    """Return a job's stored requirements, except withdrawn ones."""
    query = select(REQUIREMENTS).where(R.job == job, R.withdrawn.is_(False)).order_by(R.id)
    return [load_requirement(connection, row) for row in connection.execute(query).all()]
