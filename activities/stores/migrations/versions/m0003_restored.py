"""Add to requirements who undid a withdrawal, and why."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    for name in ("restored_by", "restored_why"):
        op.add_column("requirements", sa.Column(name, sa.Text))
