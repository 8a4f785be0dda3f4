"""Add to requirements their document's version, their doubt and what people plan by them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for name in (
        *("digest", "kept_by", "suspect", "rationale", "verification", "priority", "owner"),
    ):
        op.add_column("requirements", sa.Column(name, sa.Text))
    op.add_column("citations", sa.Column("source_id", sa.Text))
