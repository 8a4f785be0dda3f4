"""Traces in the store; each key is stored once, however often it is handed over."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from activities.checkpoints import Root
from activities.stores.relational_store import RelationalStore
from activities.stores.schema import TRACES, storable_column_value

T = TRACES.c
PLAIN = [column for column in T if column.name not in ("embedding", "embedded_by")]
OVERLAP = 200
"""How many ids before the newest are read again: a transaction with a lower id may commit
later."""


def insert_traces(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert rows whose `key` is new; return how many were inserted."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    count = 0
    for row in rows:
        values = {name: storable_column_value(value) for name, value in row.items()}
        put = dialect.insert(TRACES).values(**{"scope": "project", "retrieved": 0, **values})
        put = put.on_conflict_do_nothing(index_elements=["key"])
        # Count the returned rows, since not every driver reports a row count.
        count += len(connection.execute(put.returning(T.id)).all())
    return count


def newer_traces(connection: Connection, id: int) -> Sequence[Row[Any]]:
    """Return traces from `OVERLAP` before that id on and all universal ones, oldest first."""
    condition = or_(T.id > id - OVERLAP, T.scope == "universal")
    return connection.execute(select(*PLAIN).where(condition).order_by(T.id)).all()


def job_traces(connection: Connection, job: str) -> Sequence[Row[Any]]:
    """Return a job's traces, oldest first."""
    query = select(*PLAIN).where(T.job == job)
    return connection.execute(query.order_by(T.at, T.step, T.id)).all()


def list_stored_traces(
    connection: Connection,
    *,
    job: str = "",
    type: str = "",
    guard: str = "",
    limit: int | None = None,
) -> Sequence[Row[Any]]:
    """Return the traces that match all given filters, newest first."""
    query = select(*PLAIN).order_by(T.id.desc()).limit(limit)
    for column, value in ((T.job, job), (T.type, type), (T.guard, guard)):
        if value:
            query = query.where(column == value)
    return connection.execute(query).all()


def find_trace(connection: Connection, id: int) -> Row[Any] | None:
    return connection.execute(select(*PLAIN).where(T.id == id)).first()


def increment_trace_retrievals(connection: Connection, ids: Sequence[int]) -> None:
    """Increment the counts of these traces, which were shown to an agent."""
    counted = update(TRACES).where(T.id.in_(ids)).values(retrieved=T.retrieved + 1)
    connection.execute(counted)


def make_stored_trace_universal(connection: Connection, id: int) -> bool:
    """Show a trace to every project; return whether it exists."""
    result = connection.execute(update(TRACES).where(T.id == id).values(scope="universal"))
    return result.rowcount > 0


def forget_traces(connection: Connection, job: str) -> None:
    connection.execute(delete(TRACES).where(T.job == job))


def count_traces(connection: Connection) -> int:
    return int(connection.execute(select(func.count()).select_from(TRACES)).scalar_one())


def traces_without_vector(
    connection: Connection, model: str, project: str, agent: str, limit: int
) -> Sequence[Row[Any]]:
    """Return traces without an embedding of this model, newest first.

    Only universal ones and those of the project, or of the agent's jobs without a project.
    """
    lacking = or_(T.embedded_by.is_(None), T.embedded_by != model)
    in_scope = T.project == project if project else and_(T.project == "", T.agent == agent)
    return connection.execute(
        select(*PLAIN)
        .where(lacking, or_(in_scope, T.scope == "universal"))
        .order_by(T.id.desc())
        .limit(limit)
    ).all()


def store_trace_vectors(connection: Connection, model: str, vectors: Mapping[int, bytes]) -> None:
    for id, vector in vectors.items():
        values = {"embedding": vector, "embedded_by": model}
        connection.execute(update(TRACES).where(T.id == id).values(values))


def read_stored_trace_vectors(connection: Connection, model: str, known: int) -> dict[int, bytes]:
    """Return this model's embeddings by id; empty if their number still equals `known`."""
    of_model = T.embedded_by == model
    counted = select(func.count()).select_from(TRACES).where(of_model)
    if connection.execute(counted).scalar_one() == known:
        return {}
    rows = connection.execute(select(T.id, T.embedding).where(of_model))
    return {row.id: row.embedding for row in rows}


def read_job_traces(root: Root, job: str) -> Sequence[Row[Any]]:
    """Return a job's traces in the store, oldest first.

    Raises:
        StoreUnavailableError: The store does not answer.
    """
    return RelationalStore(root).read(lambda connection: job_traces(connection, job))
