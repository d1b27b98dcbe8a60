"""Accounts: who may sign in, with which role, and who has; passwords and tokens are kept as hashes only."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, select

from vrbot.serving.actors import ADMINISTER, ROLES, SYSTEM, Actor
from vrbot.serving.problems import ConflictError, InvalidInputError, NotFoundError, SignInError
from vrbot.serving.schema import logins, users
from vrbot.serving.store import Store
from vrbot.serving.texts import checked_text

MICROSECONDS = 1_000_000
LIFETIME_SECONDS = 12 * 3600
MIN_PASSWORD, MAX_PASSWORD = 10, 1024
_USER_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{1,63}")


@dataclass(frozen=True)
class User:
    """An account, without its password."""

    id: str
    name: str
    role: str
    disabled: bool
    made_at: int

    @property
    def actor(self) -> Actor:
        return Actor(self.id, self.role)


@dataclass(frozen=True)
class Login:
    """A successful sign-in; the token is shown this once and cannot be found again."""

    token: str
    user: User
    expires_at: int


class Accounts:
    """The accounts of a store; `hasher` is argon2id at the library's recommended cost."""

    def __init__(
        self, store: Store, hasher: PasswordHasher | None = None, lifetime_seconds: int = LIFETIME_SECONDS
    ) -> None:
        self._store, self._hasher = store, hasher or PasswordHasher()
        self._lifetime = lifetime_seconds * MICROSECONDS
        self._nobody: str | None = None

    def add(self, actor: Actor, name: str, password: str, role: str) -> User:
        """A new account."""
        actor.must(ADMINISTER)
        _checked_user_name(name)
        if role not in ROLES:
            raise InvalidInputError(f"{str(role)[:20]!r} is not a role: use one of {', '.join(ROLES)}")
        hashed = self._hasher.hash(_checked_password(password))
        with self._store.writing("user added", actor) as writer:
            if _row(writer.connection, name) is not None:
                raise ConflictError(f"there is a user {name!r} already: choose another name")
            values = {"name": name, "role": role, "password_hash": hashed, "disabled": 0}
            row = writer.insert(users, made_at=writer.now, **values)
            writer.detail |= {"user": row["id"], "role": role}
        return _user(row)

    def add_first(self, name: str, password: str) -> User:
        """The first administrator, by whoever has the set-up code; ConflictError once there is any account."""
        _checked_user_name(name)
        hashed = self._hasher.hash(_checked_password(password))
        with self._store.writing("first administrator added", SYSTEM) as writer:
            if writer.connection.execute(select(users.c.id).limit(1)).first() is not None:
                raise ConflictError("there are accounts already: sign in, or ask an administrator for one")
            values = {"name": name, "role": "admin", "password_hash": hashed, "disabled": 0}
            row = writer.insert(users, made_at=writer.now, **values)
            writer.detail |= {"user": row["id"], "role": "admin"}
        return _user(row)

    def are_none(self) -> bool:
        """Whether nobody has an account yet."""
        with self._store.reading() as connection:
            return connection.execute(select(users.c.id).limit(1)).first() is None

    def active_physician(self, name: str) -> User:
        """The physician of this name who can sign in; NotFoundError if there is none."""
        with self._store.reading() as connection:
            row = _row(connection, name) if isinstance(name, str) and _USER_NAME.fullmatch(name) else None
        if row is None or row["disabled"] or row["role"] != "physician":
            raise NotFoundError("there is no such physician: check the name")
        return _user(row)

    def everyone(self, actor: Actor) -> list[User]:
        """All accounts by name."""
        actor.must(ADMINISTER)
        with self._store.reading() as connection:
            rows = connection.execute(select(users).order_by(users.c.name)).mappings()
            return [_user(dict(row)) for row in rows]

    def set_disabled(self, actor: Actor, name: str, disabled: bool = True) -> User:
        """Shuts an account out (and ends its sign-ins), or lets it in again."""
        return self._change(actor, name, "user disabled" if disabled else "user enabled", disabled=int(disabled))

    def set_password(self, actor: Actor, name: str, password: str) -> User:
        """A new password; whoever is signed in with the old one no longer is."""
        return self._change(actor, name, "password set", password_hash=self._hasher.hash(_checked_password(password)))

    def sign_in(self, name: str, password: str) -> Login:
        """A token for a name and its password; SignInError does not say which of the two was wrong."""
        with self._store.reading() as connection:
            row = _row(connection, name) if isinstance(name, str) and _USER_NAME.fullmatch(name) else None
        # Somebody unknown costs as much time as a wrong password: names cannot be found out by the clock.
        matches = self._matches(self._nobody_hash() if row is None else row["password_hash"], password)
        if row is None or not matches or row["disabled"]:
            with self._store.writing("sign-in refused", SYSTEM) as writer:
                writer.detail["user"] = None if row is None else row["id"]
            raise SignInError("name and password do not belong together, or the account is disabled")
        token = secrets.token_urlsafe(32)
        with self._store.writing("signed in", _user(row).actor) as writer:
            old = select(logins.c.id).where(logins.c.user == row["id"], logins.c.expires_at <= writer.now)
            for key in writer.connection.execute(old).scalars().all():
                writer.delete(logins, key)
            if self._hasher.check_needs_rehash(row["password_hash"]):
                writer.update(users, row["id"], password_hash=self._hasher.hash(password))
            expires = writer.now + self._lifetime
            writer.insert(logins, id=_hidden(token), user=row["id"], made_at=writer.now, expires_at=expires)
        return Login(token, _user(row), expires)

    def who(self, token: str) -> User | None:
        """Whose token it is; None once it has expired, was given back, or the account is disabled."""
        query = select(users).join(logins, logins.c.user == users.c.id)
        query = query.where(logins.c.id == _hidden(token), logins.c.expires_at > self._store.clock())
        with self._store.reading() as connection:
            row = connection.execute(query.where(users.c.disabled == 0)).mappings().one_or_none()
        return None if row is None else _user(dict(row))

    def sign_out(self, token: str) -> None:
        """Ends a sign-in; a token nobody has is none of anybody's business."""
        user = self.who(token)
        if user is None:
            return
        with self._store.writing("signed out", user.actor) as writer:
            writer.delete(logins, _hidden(token))

    def _change(self, actor: Actor, name: str, kind: str, **values: Any) -> User:
        actor.must(ADMINISTER)
        with self._store.writing(kind, actor) as writer:
            row = _row(writer.connection, name)
            if row is None:
                raise NotFoundError(f"there is no user {name[:64]!r}: see `vrbot users list`")
            writer.update(users, row["id"], **values)
            signed_in = select(logins.c.id).where(logins.c.user == row["id"])
            for key in writer.connection.execute(signed_in).scalars().all():
                writer.delete(logins, key)
            writer.detail["user"] = row["id"]
            return _user({**row, **values})

    def _matches(self, hashed: str, password: str) -> bool:
        try:
            return self._hasher.verify(hashed, password)
        except (VerificationError, InvalidHashError, UnicodeEncodeError):
            return False

    def _nobody_hash(self) -> str:
        if self._nobody is None:
            self._nobody = self._hasher.hash(secrets.token_hex(16))
        return self._nobody


def _row(connection: Connection, name: str) -> dict[str, Any] | None:
    row = connection.execute(select(users).where(users.c.name == name)).mappings().one_or_none()
    return None if row is None else dict(row)


def _user(row: dict[str, Any]) -> User:
    return User(row["id"], row["name"], row["role"], bool(row["disabled"]), row["made_at"])


def _hidden(token: str) -> str:
    """What is kept of a token; it has 256 bits of chance, so a plain hash suffices."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _checked_user_name(name: str) -> None:
    if not isinstance(name, str) or not _USER_NAME.fullmatch(name):
        raise InvalidInputError("a user name is 2 to 64 of a-z 0-9 . _ @ -, and begins with a letter or digit")


def _checked_password(password: str) -> str:
    checked_text(password, "the password")
    if not MIN_PASSWORD <= len(password) <= MAX_PASSWORD:
        raise InvalidInputError(f"a password has {MIN_PASSWORD} to {MAX_PASSWORD} characters: choose a longer one")
    return password
