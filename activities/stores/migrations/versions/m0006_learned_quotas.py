"""Order turns by weight, and keep what was learned of an endpoint's quota."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("endpoints", sa.Column("round", sa.Float, nullable=False, server_default="0"))
    op.add_column("endpoints", sa.Column("learned", sa.Text, nullable=False, server_default=""))
    # Turns are of the next seconds: those of before count no more.
    op.drop_table("turns")
    op.create_table(
        "turns",
        sa.Column("endpoint", sa.Text, primary_key=True),
        sa.Column("call", sa.Text, primary_key=True),
        sa.Column("start", sa.Float, nullable=False),
        sa.Column("looks_at", sa.Float, nullable=False),
        sa.Column("at", sa.Float),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.Float, nullable=False),
    )
    op.create_table(
        "shares",
        sa.Column("endpoint", sa.Text, primary_key=True),
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("next", sa.Float, nullable=False),
    )
