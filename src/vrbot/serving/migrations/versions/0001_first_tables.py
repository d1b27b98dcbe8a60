"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes all tables, and the head of a chain without events."""
    _make_conversations()
    _make_drafts()
    _make_decisions()
    _make_judgements()
    _make_accounts()
    _make_audit()
    head = sa.table("audit_head", sa.column("id"), sa.column("seq"), sa.column("hash"))
    op.execute(head.insert().values(id=1, seq=0, hash="0" * 64))


def downgrade() -> None:
    """There is nothing before this: what patients said is not thrown away by a command."""
    raise NotImplementedError("the first revision cannot be undone: restore a backup instead")


def _make_conversations() -> None:
    """What was said."""
    op.create_table(
        "consultations",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("language", sa.String(length=32), nullable=False),
        sa.Column("reference", sa.LargeBinary(), nullable=False),
        sa.Column("demo", sa.Integer(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_consultations")),
    )
    op.create_index(op.f("ix_consultations_owner"), "consultations", ["owner"], unique=False)
    op.create_table(
        "turns",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("consultation", sa.String(length=64), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("client_turn_id", sa.String(length=128), nullable=False),
        sa.Column("text", sa.LargeBinary(), nullable=False),
        sa.Column("text_sha256", sa.String(length=64), nullable=False),
        sa.Column("flags", sa.LargeBinary(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("received_by", sa.String(length=64), nullable=False),
        sa.CheckConstraint("seq >= 1", name=op.f("ck_turns_seq")),
        sa.ForeignKeyConstraint(["consultation"], ["consultations.id"], name=op.f("fk_turns_consultation")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_turns")),
        sa.UniqueConstraint("consultation", "client_turn_id", name=op.f("uq_turns_consultation_client_turn_id")),
        sa.UniqueConstraint("consultation", "seq", name=op.f("uq_turns_consultation_seq")),
    )


def _make_drafts() -> None:
    """What was proposed."""
    op.create_table(
        "drafts",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("turn", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("origin", sa.String(length=32), nullable=False),
        sa.Column("parent", sa.String(length=64), nullable=True),
        sa.Column("request_sha256", sa.String(length=64), nullable=False),
        sa.Column("context", sa.LargeBinary(), nullable=False),
        sa.Column("change", sa.LargeBinary(), nullable=True),
        sa.Column("model", sa.String(length=128), nullable=True),
        sa.Column("reply", sa.LargeBinary(), nullable=True),
        sa.Column("text", sa.LargeBinary(), nullable=True),
        sa.Column("text_sha256", sa.String(length=64), nullable=True),
        sa.Column("checks", sa.LargeBinary(), nullable=False),
        sa.Column("failure", sa.LargeBinary(), nullable=True),
        sa.Column("suggests_medicine", sa.Integer(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.Column("made_by", sa.String(length=64), nullable=False),
        sa.CheckConstraint("origin IN ('model', 'what_if', 'physician')", name=op.f("ck_drafts_origin")),
        sa.CheckConstraint("(text IS NULL) = (failure IS NOT NULL)", name=op.f("ck_drafts_text_or_failure")),
        sa.ForeignKeyConstraint(["parent"], ["drafts.id"], name=op.f("fk_drafts_parent")),
        sa.ForeignKeyConstraint(["turn"], ["turns.id"], name=op.f("fk_drafts_turn")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_drafts")),
        sa.UniqueConstraint("turn", "version", name=op.f("uq_drafts_turn_version")),
    )


def _make_decisions() -> None:
    """What physicians decided, and what was sent."""
    op.create_table(
        "decisions",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("draft", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("text_sha256", sa.String(length=64), nullable=False),
        sa.Column("reason", sa.LargeBinary(), nullable=True),
        sa.Column("checks", sa.LargeBinary(), nullable=False),
        sa.Column("simulated", sa.Integer(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.Column("made_by", sa.String(length=64), nullable=False),
        sa.CheckConstraint("kind IN ('accept', 'edit', 'reject')", name=op.f("ck_decisions_kind")),
        sa.ForeignKeyConstraint(["draft"], ["drafts.id"], name=op.f("fk_decisions_draft")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decisions")),
        sa.UniqueConstraint("draft", name=op.f("uq_decisions_draft")),
    )
    op.create_table(
        "messages",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("turn", sa.String(length=64), nullable=False),
        sa.Column("draft", sa.String(length=64), nullable=False),
        sa.Column("decision", sa.String(length=64), nullable=False),
        sa.Column("text_sha256", sa.String(length=64), nullable=False),
        sa.Column("medicine_suggestion", sa.Integer(), nullable=False),
        sa.Column("sent_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["decision"], ["decisions.id"], name=op.f("fk_messages_decision")),
        sa.ForeignKeyConstraint(["draft"], ["drafts.id"], name=op.f("fk_messages_draft")),
        sa.ForeignKeyConstraint(["turn"], ["turns.id"], name=op.f("fk_messages_turn")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages")),
        sa.UniqueConstraint("decision", name=op.f("uq_messages_decision")),
        sa.UniqueConstraint("draft", name=op.f("uq_messages_draft")),
        sa.UniqueConstraint("turn", name=op.f("uq_messages_turn")),
    )


def _make_judgements() -> None:
    """Labels and blind ratings."""
    op.create_table(
        "labels",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("turn", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.Column("made_by", sa.String(length=64), nullable=False),
        sa.CheckConstraint("kind IN ('state', 'category', 'keywords')", name=op.f("ck_labels_kind")),
        sa.ForeignKeyConstraint(["turn"], ["turns.id"], name=op.f("fk_labels_turn")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_labels")),
        sa.UniqueConstraint("turn", "number", name=op.f("uq_labels_turn_number")),
    )
    op.create_table(
        "rating_orders",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("campaign", sa.String(length=128), nullable=False),
        sa.Column("item", sa.String(length=128), nullable=False),
        sa.Column("rater", sa.String(length=64), nullable=False),
        sa.Column("systems", sa.LargeBinary(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rating_orders")),
        sa.UniqueConstraint("campaign", "item", "rater", name=op.f("uq_rating_orders_campaign_item_rater")),
    )
    op.create_table(
        "ratings",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("rating_order", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("measure", sa.String(length=32), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["rating_order"], ["rating_orders.id"], name=op.f("fk_ratings_rating_order")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ratings")),
        sa.UniqueConstraint("rating_order", "number", name=op.f("uq_ratings_rating_order_number")),
    )


def _make_accounts() -> None:
    """Who may sign in, and who has."""
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("role", sa.String(length=32), nullable=False),
        sa.Column("password_hash", sa.String(length=255), nullable=False),
        sa.Column("disabled", sa.Integer(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )
    op.create_table(
        "logins",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("user", sa.String(length=64), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["user"], ["users.id"], name=op.f("fk_logins_user")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_logins")),
    )
    op.create_index(op.f("ix_logins_user"), "logins", ["user"], unique=False)


def _make_audit() -> None:
    """The chain of events, and its head."""
    op.create_table(
        "audit_events",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("consultation", sa.String(length=64), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit_events")),
    )
    op.create_index(op.f("ix_audit_events_consultation"), "audit_events", ["consultation"], unique=False)
    op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_head")),
    )
