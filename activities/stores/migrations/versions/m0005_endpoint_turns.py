"""Add the turns of requests at endpoints with a quota."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "endpoints",
        sa.Column("endpoint", sa.Text, primary_key=True),
        *(
            sa.Column(name, sa.Float, nullable=False)
            for name in ("requests_at", "tokens_at", "tokens_per_byte")
        ),
    )
    op.create_table(
        "turns",
        sa.Column("endpoint", sa.Text, primary_key=True),
        sa.Column("call", sa.Text, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.Float, nullable=False),
    )
