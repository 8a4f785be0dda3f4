"""Create the tables of version 0.1.0, as `schema` has them.

Once this version is released, write them out here: a later schema has columns that the next
migration adds.
"""

from alembic import op

from activities.stores.schema import METADATA

revision = "0006"
down_revision = None


def upgrade() -> None:
    METADATA.create_all(op.get_bind())
