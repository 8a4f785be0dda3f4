"""Traces."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TEXTS = ("project", "job", "agent", "task")
CONTENT = ("type", "todo", "what_happened", "what_was_correct", "why", "source", "guard", "tool")
PLACE = ("path", "stage", "checkpoint", "scope")


def upgrade() -> None:
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
