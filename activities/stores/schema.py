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


def _texts(*names: str, required: bool = False) -> list[Column[str]]:
    return [Column(name, Text, nullable=not required) for name in names]


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
    *_texts("text", "type", "source", "reasoning", "status", required=True),
    *_texts("candidate", "duplicate_of", "taken_by", "taken_key", "decided_by", "decided_key"),
    *_texts("reasons", "restored_why", "rationale", "verification", "priority"),
    Column("force", Text, nullable=False, server_default="must"),
    Column("confidence", Float, nullable=False),
    Column("blob", Text, nullable=False),  # git id of its final.json
    Column("key", Text, nullable=False),  # idempotency key of the call that wrote it
    Column("at", BigInteger, nullable=False),  # when that call was scheduled, epoch ms
    # By a person or fork, or missing in the workspace.
    Column("withdrawn", Boolean, nullable=False),
    Column("taken_until", BigInteger),  # epoch ms; afterwards other jobs may take it
    Column("decided_at", BigInteger),  # when the call was scheduled, epoch ms
    Column("said", Text),  # fingerprint of its words, equal in duplicates
    Column("withdrawn_by", Text),  # a person or a fork; NULL after a rewind
    Column("withdrawn_why", Text),  # if set, filling does not restore the row
    Column("restored_by", Text),  # the person who undid the withdrawal
    Column("digest", Text),  # SHA-256 of its source as it was read
    Column("kept_by", Text),  # jobs that found it unchanged in a new version, between spaces
    Column("suspect", Text),  # why it may no longer hold: its passage changed or is gone
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
    *_texts("id", "document", "quote", required=True),
    *_texts("label", "section", "url", "accessed"),
    Column("page", Integer, nullable=False),
    Column("source_id", Text),  # what the document calls the item
    ForeignKeyConstraint(
        ["job", "requirement"], ["requirements.job", "requirements.id"], ondelete="CASCADE"
    ),
)

TRACES = Table(
    "traces",
    METADATA,
    Column("id", Integer, primary_key=True),
    *_texts("job", "agent", "task", "type", "todo", "what_happened", required=True),
    *_texts("what_was_correct", "why", "source", "guard", "tool", "path", required=True),
    *_texts("checkpoint", required=True),
    Column("key", Text, nullable=False, unique=True),  # run id and number, or a call's key
    Column("project", Text, nullable=False),  # empty: the job belongs to no project
    Column("phase", Integer, nullable=False),
    Column("step", Integer, nullable=False),
    Column("at", BigInteger, nullable=False),  # epoch seconds
    Column("stage", Text, nullable=False),  # `experiment` if nothing was really refused
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

PLACES = Table(
    "places",
    METADATA,
    Column("endpoint", Text, primary_key=True),
    Column("holder", Text, primary_key=True),
    Column("since", Float, nullable=False),
    Column("until", Float, nullable=False),  # its lease, epoch seconds
)


def storable_column_value(value: Any) -> Any:
    """Return the value without zero bytes, which PostgreSQL refuses in texts."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
