"""The tables; every row but those of accounts and the end of a consultation is written once and never changed.

Times are whole microseconds since 1970 (UTC); truth values are 0 and 1; texts of people are `ExactText`, and so are
JSON values, in canonical form.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Integer, MetaData, String, Table
from sqlalchemy import UniqueConstraint as Unique

from vrbot.serving.texts import MAX_NAME_LENGTH, ExactText

CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=CONVENTION)

ID, SHA256, WORD, NAME = String(64), String(64), String(32), String(MAX_NAME_LENGTH)
ORIGINS = ("model", "what_if", "physician")
DECISIONS = ("accept", "edit", "reject")
LABELS = ("state", "category", "keywords")


def _one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(repr(value) for value in values)})", name=column)


def _id() -> Column[str]:
    return Column("id", ID, primary_key=True)


def _to(name: str, table: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, ID, ForeignKey(f"{table}.id"), nullable=nullable)


consultations = Table(
    "consultations",
    metadata,
    _id(),
    Column("owner", ID, nullable=False, index=True),
    Column("language", WORD, nullable=False),
    Column("reference", ExactText, nullable=False),
    Column("demo", Integer, nullable=False),
    Column("opened_at", BigInteger, nullable=False),
    Column("closed_at", BigInteger),
)
openings = Table(
    "openings",
    metadata,
    _id(),
    Column("owner", ID, nullable=False),
    Column("client_consultation_id", NAME, nullable=False),
    _to("consultation", "consultations"),
    Unique("owner", "client_consultation_id"),
)
turns = Table(
    "turns",
    metadata,
    _id(),
    _to("consultation", "consultations"),
    Column("seq", Integer, nullable=False),
    Column("client_turn_id", NAME, nullable=False),
    Column("text", ExactText, nullable=False),
    Column("text_sha256", SHA256, nullable=False),
    Column("flags", ExactText, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("received_by", ID, nullable=False),
    Unique("consultation", "seq"),
    Unique("consultation", "client_turn_id"),
    CheckConstraint("seq >= 1", name="seq"),
)
drafts = Table(
    "drafts",
    metadata,
    _id(),
    _to("turn", "turns"),
    Column("version", Integer, nullable=False),
    Column("origin", WORD, nullable=False),
    _to("parent", "drafts", nullable=True),
    Column("request_sha256", SHA256, nullable=False),
    Column("context", ExactText, nullable=False),
    Column("change", ExactText),
    Column("model", NAME),
    Column("reply", ExactText),
    Column("text", ExactText),
    Column("text_sha256", SHA256),
    Column("checks", ExactText, nullable=False),
    Column("failure", ExactText),
    Column("suggests_medicine", Integer, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("made_by", ID, nullable=False),
    Unique("turn", "version"),
    _one_of("origin", ORIGINS),
    CheckConstraint("(text IS NULL) = (failure IS NOT NULL)", name="text_or_failure"),
)
decisions = Table(
    "decisions",
    metadata,
    _id(),
    _to("draft", "drafts"),
    Column("kind", WORD, nullable=False),
    Column("text_sha256", SHA256, nullable=False),
    Column("reason", ExactText),
    Column("checks", ExactText, nullable=False),
    Column("simulated", Integer, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("made_by", ID, nullable=False),
    Unique("draft"),
    _one_of("kind", DECISIONS),
)
messages = Table(
    "messages",
    metadata,
    _id(),
    _to("turn", "turns"),
    _to("draft", "drafts"),
    _to("decision", "decisions"),
    Column("text_sha256", SHA256, nullable=False),
    Column("medicine_suggestion", Integer, nullable=False),
    Column("sent_at", BigInteger, nullable=False),
    Unique("turn"),
    Unique("draft"),
    Unique("decision"),
)
labels = Table(
    "labels",
    metadata,
    _id(),
    _to("turn", "turns"),
    Column("number", Integer, nullable=False),
    Column("kind", WORD, nullable=False),
    Column("value", ExactText, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("made_by", ID, nullable=False),
    Unique("turn", "number"),
    _one_of("kind", LABELS),
)
rating_orders = Table(
    "rating_orders",
    metadata,
    _id(),
    Column("campaign", NAME, nullable=False),
    Column("item", NAME, nullable=False),
    Column("rater", ID, nullable=False),
    Column("systems", ExactText, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Unique("campaign", "item", "rater"),
)
ratings = Table(
    "ratings",
    metadata,
    _id(),
    _to("rating_order", "rating_orders"),
    Column("number", Integer, nullable=False),
    Column("measure", WORD, nullable=False),
    Column("position", Integer, nullable=False),
    Column("value", Integer, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Unique("rating_order", "number"),
)
users = Table(
    "users",
    metadata,
    _id(),
    Column("name", NAME, nullable=False, unique=True),
    Column("role", WORD, nullable=False),
    Column("password_hash", String(255), nullable=False),
    Column("disabled", Integer, nullable=False),
    Column("made_at", BigInteger, nullable=False),
)
logins = Table(
    "logins",
    metadata,
    _id(),
    Column("user", ID, ForeignKey("users.id"), nullable=False, index=True),
    Column("made_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)
audit_events = Table(
    "audit_events",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", WORD, nullable=False),
    Column("consultation", ID, index=True),
    Column("body", ExactText, nullable=False),
    Column("hash", SHA256, nullable=False),
)
audit_head = Table(
    "audit_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", SHA256, nullable=False),
)
AUDITED = tuple(table for table in metadata.sorted_tables if table not in (audit_events, audit_head))
"""The tables every row of which is vouched for by an event, each after those it refers to."""
