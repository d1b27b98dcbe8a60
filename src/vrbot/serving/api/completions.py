"""A part of OpenAI's API, so that a physician's own tools work unchanged: drafts for them, never a patient channel.

Nothing is stored of what was said, only an audit event with fingerprints; nothing from here can be approved or sent.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from vrbot.safety.tables import NOTICE
from vrbot.serving.actors import CONSULT, Actor
from vrbot.serving.api.bodies import Text
from vrbot.serving.api.drafter import Drafter
from vrbot.serving.api.explanations import explanation_of
from vrbot.serving.api.records_out import answer, problems
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.api.signin import SignedIn
from vrbot.serving.problems import InvalidInputError, NotFoundError
from vrbot.serving.safety_desk import inspect_reply, inspect_utterance
from vrbot.serving.service import Desk
from vrbot.serving.texts import canonical_json, checked_text, text_sha256

MAX_MESSAGES = 400
PIECE = 8
"""Characters of a piece when a reply is streamed; the whole reply is there before the first."""


class Part(BaseModel):
    model_config = ConfigDict(extra="ignore")
    type: str
    text: Text = ""


class ChatMessage(BaseModel):
    model_config = ConfigDict(extra="ignore")
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Text | list[Part] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")
    include_usage: bool | None = None


class ChatRequest(BaseModel):
    """The patient is `user`, the physician `assistant`; other roles are not read. Unknown fields are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [{"model": "vrbot", "messages": [{"role": "user", "content": "I have had a cough."}]}]
        },
    )
    model: Annotated[str, Field(max_length=200)] = ""
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None


def conversation_of(messages: Sequence[ChatMessage]) -> list[tuple[str, str]]:
    """Turns of (patient, physician); what one of them says in several messages is one utterance, on lines."""
    turns: list[tuple[str, str]] = []
    last = ""
    for message in messages:
        text = checked_text(message.text, "content")
        if message.role == "user":
            if last == "user":
                turns[-1] = (f"{turns[-1][0]}\n{text}", "")
            else:
                turns.append((text, ""))
        elif message.role == "assistant":
            if not turns:
                turns.append(("", ""))
            said = turns[-1][1]
            turns[-1] = (turns[-1][0], f"{said}\n{text}" if said else text)
        else:
            continue
        last = message.role
    if last != "user":
        raise InvalidInputError("the last message must be the patient's: role user")
    return turns


def completion_routes(desk: Desk, drafter: Drafter, settings: AppSettings) -> APIRouter:
    """Under /v1."""
    routes = APIRouter(prefix="/v1", tags=["OpenAI-compatible"])
    name = settings.model_name

    @routes.get("/models", response_model=dict[str, Any], responses=problems(401))
    def list_models(actor: SignedIn) -> Response:
        """The one model that is served."""
        actor.must(CONSULT)
        return answer({"object": "list", "data": [_model(name)]})

    @routes.get("/models/{model}", response_model=dict[str, Any], responses=problems(401, 404))
    def read_model(model: str, actor: SignedIn) -> Response:
        """The one model that is served, by name."""
        actor.must(CONSULT)
        if model != name:
            raise NotFoundError(f"the model here is {name!r}")
        return answer(_model(name))

    @routes.post("/chat/completions", response_model=dict[str, Any], responses=problems(401))
    async def complete(body: ChatRequest, actor: SignedIn) -> Response:
        """A draft of the physician's next message, with `vrbot`: state, action, paths, confidence, safety findings."""
        actor.must(CONSULT)
        if body.n not in (None, 1):
            raise InvalidInputError(f"n must be 1, got {body.n}: there is one best reply")
        conversation = conversation_of(body.messages)
        reply = await drafter.reply(conversation)
        content = await drafter.in_thread(lambda: _completion(desk, actor, name, conversation, reply))
        if not body.stream:
            return answer(content)
        usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        return StreamingResponse(_pieces(content, usage), media_type="text/event-stream")

    return routes


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "vrbot"}


def _completion(
    desk: Desk, actor: Actor, name: str, conversation: list[tuple[str, str]], reply: Mapping[str, Any]
) -> dict[str, Any]:
    """The answer as OpenAI's; that it was given is in the audit log before it is."""
    text = str(reply["text"])
    checks = inspect_reply(desk.safety, text, conversation, reply)
    flags = inspect_utterance(desk.safety, conversation[-1][0])
    key = f"chatcmpl-{desk.store.new_id()}"
    with desk.store.writing("completion given", actor) as writer:
        writer.detail |= {
            "completion": key,
            "model": None if desk.responder is None else desk.responder.fingerprint,
            "request_sha256": text_sha256(canonical_json(conversation)),
            "text_sha256": text_sha256(text),
            "stops": len(checks.stops),
        }
    explained = explanation_of(reply)
    explained.pop("text")
    heard = sum(len(said) for turn in conversation for said in turn)
    return {
        "id": key,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": name,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": None},
                "finish_reason": "stop",
                "logprobs": None,
            }
        ],
        "usage": {"prompt_tokens": heard, "completion_tokens": len(text), "total_tokens": heard + len(text)},
        "vrbot": {
            **explained,
            "draft": True,
            "red_flags": list(flags.findings),
            "checks": list(checks.findings),
            "notice": NOTICE,
        },
    }


async def _pieces(content: dict[str, Any], usage: bool) -> AsyncIterator[bytes]:
    """Server-sent events as OpenAI's; the last piece carries `vrbot`."""
    head = {name: content[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    text = content["choices"][0]["message"]["content"]

    def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _event({**head, "choices": [choice], **more})

    yield event({"role": "assistant", "content": ""})
    for start in range(0, len(text), PIECE):
        yield event({"content": text[start : start + PIECE]})
    yield event({}, "stop", vrbot=content["vrbot"])
    if usage:
        yield _event({**head, "choices": [], "usage": content["usage"]})
    yield b"data: [DONE]\n\n"


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + canonical_json(value).encode("utf-8") + b"\n\n"
