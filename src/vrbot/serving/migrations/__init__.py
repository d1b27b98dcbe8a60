"""The history of the tables, kept by alembic; revisions are numbers with leading zeros, so that they have an order."""

from __future__ import annotations

from sqlalchemy import Connection

HEAD_REVISION = "0002"


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Brings the tables to a revision, inside the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "vrbot.serving:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
