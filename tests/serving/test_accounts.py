"""Accounts: passwords and tokens are hashes, sign-ins end, roles bound what is done."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from tests.serving.conftest import OpenStore
from tests.serving.fakes import ANN, EVE, RAY, SUE, quick_accounts
from vrbot.serving.accounts import Accounts
from vrbot.serving.actors import MAY, OPERATOR, ROLES
from vrbot.serving.audit import verify
from vrbot.serving.problems import ConflictError, InvalidInputError, NotFoundError, RefusedError, SignInError
from vrbot.serving.schema import audit_events, logins, users
from vrbot.serving.store import Store

PASSWORD = "correct horse 电池"


def test_who_signs_in_with_name_and_password_is_known_by_the_token(store: Store) -> None:
    accounts = quick_accounts(store)
    added = accounts.add(SUE, "ann", PASSWORD, "physician")
    login = accounts.sign_in("ann", PASSWORD)
    assert accounts.who(login.token) == added == login.user
    assert added.actor.may("consult")
    assert verify(store).good


def test_the_default_hash_is_argon2id_at_full_cost(store: Store) -> None:
    Accounts(store).add(OPERATOR, "ann", PASSWORD, "physician")
    with store.reading() as connection:
        kept = connection.execute(select(users.c.password_hash)).scalar_one()
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=4$")


def test_neither_password_nor_token_is_stored(store: Store) -> None:
    accounts = quick_accounts(store)
    accounts.add(SUE, "ann", PASSWORD, "physician")
    token = accounts.sign_in("ann", PASSWORD).token
    with store.reading() as connection:
        stored = repr([connection.execute(select(table)).all() for table in (users, logins, audit_events)])
    assert PASSWORD not in stored
    assert token not in stored


@pytest.mark.parametrize(
    ("name", "password"),
    [("ann", "wrong horse 电池"), ("bob", PASSWORD), ("ann", ""), ("", PASSWORD), ("ann", "\ud800")],
)
def test_a_wrong_sign_in_does_not_say_what_was_wrong(name: str, password: str, store: Store) -> None:
    accounts = quick_accounts(store)
    accounts.add(SUE, "ann", PASSWORD, "physician")
    with pytest.raises(SignInError, match="do not belong together"):
        accounts.sign_in(name, password)
    with store.reading() as connection:
        assert connection.execute(select(audit_events.c.kind)).scalars().all()[-1] == "sign-in refused"


def test_a_token_ends_with_its_time_and_is_cleared_away(database: str, open_store: OpenStore) -> None:
    now = [1_000_000]
    store = open_store(database, clock=lambda: now[0])
    accounts = quick_accounts(store, lifetime_seconds=60)
    accounts.add(SUE, "ann", PASSWORD, "physician")
    token = accounts.sign_in("ann", PASSWORD).token
    now[0] += 59_999_999
    assert accounts.who(token) is not None
    now[0] += 1
    assert accounts.who(token) is None
    accounts.sign_in("ann", PASSWORD)
    with store.reading() as connection:
        assert len(connection.execute(select(logins)).all()) == 1
    assert verify(store).good


@pytest.mark.parametrize("change", ["sign out", "disable", "password"])
def test_a_token_ends_at_sign_out_disabling_and_a_new_password(change: str, store: Store) -> None:
    accounts = quick_accounts(store)
    accounts.add(SUE, "ann", PASSWORD, "physician")
    token = accounts.sign_in("ann", PASSWORD).token
    if change == "sign out":
        accounts.sign_out(token)
        accounts.sign_out(token)
    elif change == "disable":
        accounts.set_disabled(SUE, "ann")
        with pytest.raises(SignInError):
            accounts.sign_in("ann", PASSWORD)
        accounts.set_disabled(SUE, "ann", False)
    else:
        accounts.set_password(SUE, "ann", "another password")
        with pytest.raises(SignInError):
            accounts.sign_in("ann", PASSWORD)
        accounts.sign_in("ann", "another password")
    assert accounts.who(token) is None
    assert verify(store).good


@pytest.mark.parametrize("token", ["", "x", "\ud800", "a\0b"])
def test_a_token_nobody_has_is_nobody(token: str, store: Store) -> None:
    assert quick_accounts(store).who(token) is None


@pytest.mark.parametrize("actor", [ANN, EVE, RAY], ids=lambda actor: actor.role)
def test_only_admins_and_operators_change_accounts(actor: object, store: Store) -> None:
    accounts = quick_accounts(store)
    accounts.add(SUE, "ann", PASSWORD, "physician")
    for attempt in (
        lambda: accounts.add(actor, "bob", PASSWORD, "admin"),  # type: ignore[arg-type]
        lambda: accounts.everyone(actor),  # type: ignore[arg-type]
        lambda: accounts.set_disabled(actor, "ann"),  # type: ignore[arg-type]
        lambda: accounts.set_password(actor, "ann", PASSWORD),  # type: ignore[arg-type]
    ):
        with pytest.raises(RefusedError, match="may not administer"):
            attempt()


def test_wrong_accounts_are_refused(store: Store) -> None:
    accounts = quick_accounts(store)
    accounts.add(SUE, "ann", PASSWORD, "physician")
    with pytest.raises(ConflictError, match="'ann'"):
        accounts.add(SUE, "ann", PASSWORD, "admin")
    for name, password, role in [
        ("Ann", PASSWORD, "admin"),
        ("a", PASSWORD, "admin"),
        ("bob", "short", "admin"),
        ("bob", PASSWORD, "operator"),
        ("bob", PASSWORD, "king"),
    ]:
        with pytest.raises(InvalidInputError):
            accounts.add(SUE, name, password, role)
    with pytest.raises(NotFoundError, match="'bob'"):
        accounts.set_disabled(SUE, "bob")


def test_an_admin_cannot_read_consultations_and_nobody_signs_in_as_an_operator() -> None:
    assert "consult" not in MAY["admin"]
    assert "operator" not in ROLES
    assert set(ROLES) <= set(MAY)
