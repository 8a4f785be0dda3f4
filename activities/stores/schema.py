"""The tables of the relational store. `migrations/` makes them; both say the same."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

METADATA = MetaData()

JOBS = Table(
    "jobs",
    METADATA,
    Column("job", Text, primary_key=True),
    Column("at", BigInteger, nullable=False),
)

REQUIREMENTS = Table(
    "requirements",
    METADATA,
    Column("job", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("text", Text, nullable=False),
    Column("force", Text, nullable=False, server_default="must"),
    Column("type", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("reasoning", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("candidate", Text),
    Column("status", Text, nullable=False),
    Column("duplicate_of", Text),
    Column("blob", Text, nullable=False),  # git id of its final.json
    Column("key", Text, nullable=False),  # idempotency key of the call that wrote it
    Column("at", BigInteger, nullable=False),  # when that call was scheduled, epoch ms
    Column(
        "withdrawn", Boolean, nullable=False
    ),  # by a person or fork, or missing in the workspace
    Column("taken_by", Text),
    Column("taken_key", Text),
    Column("taken_until", BigInteger),  # epoch ms; afterwards other jobs may take it
    Column("decided_by", Text),
    Column("decided_key", Text),
    Column("decided_at", BigInteger),  # when the call was scheduled, epoch ms
    Column("reasons", Text),
    Column("said", Text),  # fingerprint of its words, equal in duplicates
    Column("withdrawn_by", Text),  # a person or a fork; NULL after a rewind
    Column("withdrawn_why", Text),  # if set, filling does not restore the row
    Column("restored_by", Text),  # the person who undid the withdrawal
    Column("restored_why", Text),
    Column("digest", Text),  # SHA-256 of its source as it was read
    Column("kept_by", Text),  # jobs that found it unchanged in a new version, between spaces
    Column("suspect", Text),  # why it may no longer hold: its passage changed or is gone
    Column("rationale", Text),
    Column("verification", Text),
    Column("priority", Text),
    Column("owner", Text),  # the person it is assigned to
    Index("requirements_said", "said"),
    Index("requirements_to_take", "status", "withdrawn", "at"),
    Index("requirements_taken", "taken_by"),
)

CITATIONS = Table(
    "citations",
    METADATA,
    Column("job", Text, primary_key=True),
    Column("requirement", Text, primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("id", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("page", Integer, nullable=False),
    Column("label", Text),
    Column("section", Text),
    Column("quote", Text, nullable=False),
    Column("url", Text),
    Column("accessed", Text),
    Column("source_id", Text),  # what the document calls the item
    ForeignKeyConstraint(
        ["job", "requirement"], ["requirements.job", "requirements.id"], ondelete="CASCADE"
    ),
)

TRACES = Table(
    "traces",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),  # run id and number, or a call's key
    Column("project", Text, nullable=False),  # empty: the job belongs to no project
    Column("job", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("phase", Integer, nullable=False),
    Column("step", Integer, nullable=False),
    Column("at", BigInteger, nullable=False),  # epoch seconds
    Column("type", Text, nullable=False),
    Column("todo", Text, nullable=False),
    Column("what_happened", Text, nullable=False),
    Column("what_was_correct", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("guard", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("stage", Text, nullable=False),  # `experiment` if nothing was really refused
    Column("checkpoint", Text, nullable=False),
    Column("scope", Text, nullable=False),  # `project` or `universal`
    Column("retrieved", Integer, nullable=False),  # number of times shown to agents
    Column("embedding", LargeBinary),  # half-precision floats
    Column("embedded_by", Text),  # name of the embedding model
    Index("traces_of_job", "job"),
    sqlite_autoincrement=True,  # ids of deleted traces are never reused
)

ENDPOINTS = Table(
    "endpoints",
    METADATA,
    Column("endpoint", Text, primary_key=True),  # address, model and variable of the key
    Column("requests_at", Float, nullable=False),  # next free turn, epoch seconds
    Column("tokens_at", Float, nullable=False),
    Column("tokens_per_byte", Float, nullable=False),
    Column("round", Float, nullable=False, server_default="0"),  # start of the newest turn
    Column("learned", Text, nullable=False, server_default=""),  # JSON of a LearnedQuota
)

TURNS = Table(
    "turns",
    METADATA,
    Column("endpoint", Text, primary_key=True),
    Column("call", Text, primary_key=True),
    Column("start", Float, nullable=False),  # place in the order, in rounds
    Column("looks_at", Float, nullable=False),  # when its caller looks again, epoch seconds
    Column("at", Float),  # when the call got its turn; NULL while it waits
    Column("size", BigInteger, nullable=False),
    Column("tokens", Float, nullable=False),  # estimated
)

SHARES = Table(
    "shares",
    METADATA,
    Column("endpoint", Text, primary_key=True),
    Column("job", Text, primary_key=True),
    Column("next", Float, nullable=False),  # start of the job's next turn, in rounds
)


def storable_column_value(value: Any) -> Any:
    """Return the value without zero bytes, which PostgreSQL refuses in texts."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
