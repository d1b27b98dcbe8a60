"""The ids under which callers opened consultations, so that a request sent again opens nothing twice."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """A table of its own: the rows there are vouched for by events, and are not touched."""
    op.create_table(
        "openings",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("client_consultation_id", sa.String(length=128), nullable=False),
        sa.Column("consultation", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["consultation"], ["consultations.id"], name=op.f("fk_openings_consultation")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_openings")),
        sa.UniqueConstraint("owner", "client_consultation_id", name=op.f("uq_openings_owner_client_consultation_id")),
    )


def downgrade() -> None:
    """What the audit log vouches for is not thrown away by a command."""
    raise NotImplementedError("this revision cannot be undone: restore a backup instead")
