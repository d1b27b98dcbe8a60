"""OpenAI's own client talks to the desk unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.serving.api.served import PASSWORD, desk_of, on_a_port, settings_of
from vrbot.safety.tables import NOTICE
from vrbot.serving.actors import OPERATOR
from vrbot.serving.api.completions import ChatMessage, conversation_of
from vrbot.serving.app import create_app
from vrbot.serving.audit import verify
from vrbot.serving.service import Desk
from vrbot.serving.store import Store


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    store = Store.open("sqlite://", create=True)
    found = desk_of(store)
    for name, role in (("ann", "physician"), ("ray", "researcher")):
        found.accounts.add(OPERATOR, name, PASSWORD, role)
    yield found
    store.close()


@pytest.fixture(scope="module")
def address(desk: Desk) -> Iterator[str]:
    with on_a_port(create_app(desk, settings_of(model_name="clinic"))) as found:
        yield found


def client(address: str, desk: Desk, name: str = "ann") -> openai.OpenAI:
    token = desk.accounts.sign_in(name, PASSWORD).token
    return openai.OpenAI(base_url=f"{address}/v1", api_key=token, max_retries=0)


def test_the_client_completes_a_chat_and_finds_the_reasons_beside_it(address: str, desk: Desk) -> None:
    with client(address, desk) as ours:
        assert [model.id for model in ours.models.list()] == ["clinic"]
        assert ours.models.retrieve("clinic").id == "clinic"
        answer = ours.chat.completions.create(
            model="clinic",
            messages=[
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hello"},
                {"role": "assistant", "content": "what is it?"},
                {"role": "user", "content": [{"type": "text", "text": "chest pain"}]},
            ],
            temperature=0.3,
            seed=1,
            extra_body={"unheard_of": {"deep": [1]}},
        )
    assert answer.choices[0].message.content == "You say: chest pain"
    assert answer.choices[0].finish_reason == "stop"
    reasons = (answer.model_extra or {})["vrbot"]
    assert {"state", "action", "paths", "confidence", "red_flags", "checks", "draft"} <= set(reasons)
    assert reasons["red_flags"][0]["code"] == "chest_pain"
    assert reasons["notice"] == NOTICE
    assert reasons["action"]["category"] == "ask_symptoms"


def test_a_streamed_reply_is_the_same_text_in_pieces(address: str, desk: Desk) -> None:
    with client(address, desk) as ours:
        stream = ours.chat.completions.create(
            model="clinic",
            messages=[{"role": "user", "content": "我咳嗽三天了 and I have a fever"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        pieces = list(stream)
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    assert text == "You say: 我咳嗽三天了 and I have a fever"
    assert len(pieces) > 4
    assert pieces[-1].usage is not None
    (reasons,) = [extra["vrbot"] for piece in pieces if (extra := piece.model_extra or {}) and "vrbot" in extra]
    assert reasons["draft"] is True


def test_what_it_refuses_the_client_understands(address: str, desk: Desk) -> None:
    hello: Any = [{"role": "user", "content": "hello"}]
    with client(address, desk) as ours:
        with pytest.raises(openai.UnprocessableEntityError, match="patient's"):
            ours.chat.completions.create(model="x", messages=[{"role": "assistant", "content": "hm"}])
        with pytest.raises(openai.NotFoundError):
            ours.models.retrieve("other")
        with pytest.raises(openai.UnprocessableEntityError, match="n must be 1"):
            ours.chat.completions.create(model="x", messages=hello, n=2)
    with client(address, desk, "ray") as theirs, pytest.raises(openai.PermissionDeniedError):
        theirs.chat.completions.create(model="x", messages=hello)
    with (
        openai.OpenAI(base_url=f"{address}/v1", api_key="wrong", max_retries=0) as nobody,
        pytest.raises(openai.AuthenticationError),
    ):
        nobody.models.list()


def test_that_it_was_given_is_in_the_audit_log_and_what_was_said_is_not(address: str, desk: Desk) -> None:
    with client(address, desk) as ours:
        answer = ours.chat.completions.create(model="x", messages=[{"role": "user", "content": "canary-77"}])
    with desk.store.reading() as connection:
        bodies = [bytes(row[0]) for row in connection.exec_driver_sql("SELECT body FROM audit_events")]
    assert sum(answer.id.encode() in body for body in bodies) == 1
    assert all(b"canary-77" not in body for body in bodies)
    assert verify(desk.store).good


def test_messages_become_turns() -> None:
    def said(*pairs: tuple[str, str]) -> list[tuple[str, str]]:
        return conversation_of([ChatMessage(role=role, content=text) for role, text in pairs])

    assert said(("user", "a"), ("user", "b")) == [("a\nb", "")]
    assert said(("assistant", "hi"), ("user", "a")) == [("", "hi"), ("a", "")]
    assert said(("user", "a"), ("assistant", "b"), ("assistant", "c"), ("tool", "t"), ("user", "d")) == [
        ("a", "b\nc"),
        ("d", ""),
    ]
