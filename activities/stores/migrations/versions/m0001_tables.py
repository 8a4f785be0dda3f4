"""Create tables for requirements with citations, and for traces."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TEXTS = ("project", "job", "agent", "task")
CONTENT = ("type", "todo", "what_happened", "what_was_correct", "why", "source", "guard", "tool")
PLACE = ("path", "stage", "checkpoint", "scope")


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    _create_requirement_tables()
    _create_trace_table()


def _create_requirement_tables() -> None:
    op.create_table(
        "requirements",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("reasoning", sa.Text, nullable=False),
        sa.Column("confidence", sa.Float, nullable=False),
        sa.Column("candidate", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("duplicate_of", sa.Text),
        sa.Column("blob", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("withdrawn", sa.Boolean, nullable=False),
        sa.Column("taken_by", sa.Text),
        sa.Column("taken_key", sa.Text),
        sa.Column("taken_until", sa.BigInteger),
        sa.Column("decided_by", sa.Text),
        sa.Column("decided_key", sa.Text),
        sa.Column("decided_at", sa.BigInteger),
        sa.Column("reasons", sa.Text),
    )
    op.create_index("requirements_to_take", "requirements", ["status", "withdrawn", "at"])
    op.create_index("requirements_taken", "requirements", ["taken_by"])
    op.create_table(
        "citations",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("requirement", sa.Text, primary_key=True),
        sa.Column("place", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("page", sa.Integer, nullable=False),
        sa.Column("quote", sa.Text, nullable=False),
        sa.Column("url", sa.Text),
        sa.Column("accessed", sa.Text),
        sa.ForeignKeyConstraint(
            ["job", "requirement"], ["requirements.job", "requirements.id"], ondelete="CASCADE"
        ),
    )


def _create_trace_table() -> None:
    op.create_table(
        "traces",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in TEXTS),
        sa.Column("phase", sa.Integer, nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in (*CONTENT, *PLACE)),
        sa.Column("retrieved", sa.Integer, nullable=False),
        sa.Column("embedding", sa.LargeBinary),
        sa.Column("embedded_by", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_index("traces_of_job", "traces", ["job"])
