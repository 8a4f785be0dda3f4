"""Create the tables of version 0.1.0."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    _create_requirements()
    _create_traces()
    _create_endpoints()


def _create_requirements() -> None:
    op.create_table(
        "requirements",
        *_keys("job", "id"),
        *_texts("text", "type", "source", "reasoning", "status", "blob", "key", required=True),
        sa.Column("force", sa.Text, nullable=False, server_default="must"),
        sa.Column("confidence", sa.Float, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("withdrawn", sa.Boolean, nullable=False),
        sa.Column("taken_until", sa.BigInteger),
        sa.Column("decided_at", sa.BigInteger),
        *_texts("candidate", "duplicate_of", "taken_by", "taken_key", "decided_by", "decided_key"),
        *_texts("reasons", "said", "withdrawn_by", "withdrawn_why", "restored_by", "restored_why"),
        *_texts("digest", "kept_by", "suspect", "rationale", "verification", "priority", "owner"),
    )
    op.create_index("requirements_said", "requirements", ["said"])
    op.create_index("requirements_to_take", "requirements", ["status", "withdrawn", "at"])
    op.create_index("requirements_taken", "requirements", ["taken_by"])
    op.create_table(
        "citations",
        *_keys("job", "requirement"),
        sa.Column("place", sa.Integer, primary_key=True),
        *_texts("id", "document", "quote", required=True),
        sa.Column("page", sa.Integer, nullable=False),
        *_texts("label", "section", "url", "accessed", "source_id"),
        sa.ForeignKeyConstraint(
            ["job", "requirement"], ["requirements.job", "requirements.id"], ondelete="CASCADE"
        ),
    )


def _create_traces() -> None:
    op.create_table(
        "traces",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
        *_texts("project", "job", "agent", "task", "type", "todo", "what_happened", required=True),
        *_texts("what_was_correct", "why", "source", "guard", "tool", "path", required=True),
        *_texts("stage", "checkpoint", "scope", required=True),
        sa.Column("phase", sa.Integer, nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("retrieved", sa.Integer, nullable=False),
        sa.Column("embedding", sa.LargeBinary),
        *_texts("embedded_by"),
        sqlite_autoincrement=True,
    )
    op.create_index("traces_of_job", "traces", ["job"])


def _create_endpoints() -> None:
    op.create_table(
        "endpoints",
        *_keys("endpoint"),
        *_floats("requests_at", "tokens_at", "tokens_per_byte"),
        sa.Column("round", sa.Float, nullable=False, server_default="0"),
        sa.Column("learned", sa.Text, nullable=False, server_default=""),
    )
    op.create_table(
        "turns",
        *_keys("endpoint", "call"),
        *_floats("start", "looks_at", "tokens"),
        sa.Column("at", sa.Float),
        sa.Column("size", sa.BigInteger, nullable=False),
    )
    op.create_table("shares", *_keys("endpoint", "job"), *_floats("next"))


def _keys(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, primary_key=True) for name in names]


def _texts(*names: str, required: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=not required) for name in names]


def _floats(*names: str) -> list[sa.Column[float]]:
    return [sa.Column(name, sa.Float, nullable=False) for name in names]
