"""Add force, normalised text and withdrawal to requirements, label and section to citations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    # Existing rows have no force; most binding statements say must.
    force = sa.Column("force", sa.Text, nullable=False, server_default="must")
    op.add_column("requirements", force)
    for name in ("said", "withdrawn_by", "withdrawn_why"):
        op.add_column("requirements", sa.Column(name, sa.Text))
    op.create_index("requirements_said", "requirements", ["said"])
    for name in ("label", "section"):
        op.add_column("citations", sa.Column(name, sa.Text))
