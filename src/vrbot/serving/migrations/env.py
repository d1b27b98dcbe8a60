"""What alembic runs around migrations; `upgrade` gives it a connection whose transaction is the caller's."""

from __future__ import annotations

from alembic import context

from vrbot.serving.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
