"""The tables of the relational store. `migrations/` makes them; both say the same."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
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
    Column("type", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("reasoning", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("candidate", Text),
    Column("status", Text, nullable=False),
    Column("duplicate_of", Text),
    Column("blob", Text, nullable=False),  # git id of the final.json it was filled from
    Column("key", Text, nullable=False),  # idempotency key of the call that filled it
    Column("at", BigInteger, nullable=False),  # when that call was scheduled, epoch ms
    Column("withdrawn", Boolean, nullable=False),  # no longer in its job's workspace
    Column("taken_by", Text),
    Column("taken_key", Text),
    Column("taken_until", BigInteger),  # epoch ms; then another may take it
    Column("decided_by", Text),
    Column("decided_key", Text),
    Column("decided_at", BigInteger),  # when the call was scheduled, epoch ms
    Column("reasons", Text),
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
    Column("quote", Text, nullable=False),
    Column("url", Text),
    Column("accessed", Text),
    ForeignKeyConstraint(
        ["job", "requirement"], ["requirements.job", "requirements.id"], ondelete="CASCADE"
    ),
)
