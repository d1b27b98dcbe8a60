"""`llm`: what is asked and what never is, patience and its end, and answers that are kept."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from tests.baselines.stand_in import Heard, Said, StandIn, completion, echo, standing_in
from vrbot.baselines.catalogue import build_model
from vrbot.baselines.llm.cache import AnswerCache
from vrbot.baselines.llm.endpoint import Completion, Endpoint, EndpointError
from vrbot.baselines.llm.prompts import (
    HINTS,
    INSTRUCTIONS,
    Hint,
    Question,
    Speaker,
    language_of,
    messages_of,
    reply_text,
)
from vrbot.baselines.llm.settings import EndpointSettings
from vrbot.baselines.llm.system import LanguageModel, open_language_model
from vrbot.config import recipe
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.session import CATEGORIES
from vrbot.errors import ConfigError, IntegrityError, UsageError

ASKED = Question((("patient", "我咳嗽三天了"), ("physician", "有没有发烧？"), ("patient", "发烧")))
KEY = "sk-a-very-secret-key"


@pytest.fixture
def server() -> Iterator[StandIn]:
    with standing_in() as running:
        yield running


def settings(server: StandIn, **changes: Any) -> EndpointSettings:
    return EndpointSettings.of(server.url, {"model": "stand-in", "timeout": 5, **changes})


def asker(server: StandIn, pauses: list[float] | None = None, key: str | None = None, **changes: Any) -> LanguageModel:
    """A model without a cache that notes its pauses instead of making them."""
    chosen = settings(server, **changes)
    return LanguageModel(chosen, Endpoint(chosen, key, ([] if pauses is None else pauses).append))


def failing(times: int, said: Said) -> Any:
    """A script that says this so many times, and then answers."""
    return lambda heard, number: said if number < times else echo(heard, number)


def test_a_question_is_sent_as_a_chat_in_which_the_patient_is_the_user(server: StandIn) -> None:
    assert asker(server).reply(ASKED) == "您说发烧，有没有发烧？"
    (heard,) = server.heard
    assert heard.path == "/v1/chat/completions"
    assert heard.body["messages"] == [
        {"role": "system", "content": INSTRUCTIONS["zh"]},
        {"role": "user", "content": "我咳嗽三天了"},
        {"role": "assistant", "content": "有没有发烧？"},
        {"role": "user", "content": "发烧"},
    ]
    assert (heard.body["model"], heard.body["temperature"], heard.body["stream"]) == ("stand-in", 0.0, False)


def test_the_key_comes_from_the_environment_and_goes_into_the_header_only(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    system = open_language_model(settings(server, key_variable="SOME_KEY"), tmp_path)
    system.reply(ASKED)
    (heard,) = server.heard
    assert heard.headers["Authorization"] == f"Bearer {KEY}"
    assert KEY not in json.dumps(heard.body)
    assert KEY not in json.dumps(system.settings.as_dict())
    assert all(KEY not in file.read_text("utf-8") for file in tmp_path.rglob("*.json"))


def test_without_a_key_no_authorization_is_sent(server: StandIn) -> None:
    asker(server).reply(ASKED)
    assert "Authorization" not in server.heard[0].headers


def test_a_server_that_repeats_the_key_in_an_error_does_not_bring_it_to_the_screen(server: StandIn) -> None:
    server.script = lambda *_: Said(401, f"bad key {KEY}".encode())
    with pytest.raises(EndpointError, match="VRBOT_LLM_API_KEY") as refused:
        asker(server, key=KEY).reply(ASKED)
    assert KEY not in str(refused.value)


@pytest.mark.parametrize(
    "said",
    [
        Said(429, b"slow down"),
        Said(500, b"oops"),
        Said(503, b""),
        Said(200, b"{not json"),
        Said(200, b'{"choices": []}'),
        Said(200, b'[{"choices": 3}]'),
        Said(200, completion(None)),
        Said(200, b'{"choices": [', announced_length=4000),
    ],
    ids=["429", "500", "503", "malformed", "no choices", "another shape", "no text", "broken off"],
)
def test_what_may_pass_is_tried_again_with_growing_pauses(server: StandIn, said: Said) -> None:
    pauses: list[float] = []
    server.script = failing(3, said)
    assert asker(server, pauses).reply(ASKED) == "您说发烧，有没有发烧？"
    assert pauses == [0.5, 1.0, 2.0]
    assert len({json.dumps(heard.body) for heard in server.heard}) == 1


def test_retry_after_is_obeyed_in_seconds_and_as_a_date_up_to_the_longest_pause(server: StandIn) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    headers = ["7", date, "86400", "soon"]

    def script(heard: Heard, number: int) -> Said:
        return Said(429, headers={"Retry-After": headers[number]}) if number < 4 else echo(heard, number)

    server.script = script
    pauses: list[float] = []
    asker(server, pauses, longest_pause=30).reply(ASKED)
    assert pauses[0] == 7
    assert 15 <= pauses[1] <= 20
    assert pauses[2:] == [30, 4.0]


def test_patience_ends_after_the_retries_and_the_error_says_what_was_last(server: StandIn) -> None:
    server.script = lambda *_: Said(500, "机器坏了".encode())
    with pytest.raises(EndpointError, match=r"failed 3 times.*status 500: 机器坏了.*again to go on"):
        asker(server, retries=2).reply(ASKED)
    assert len(server.heard) == 3


@pytest.mark.parametrize("status", [400, 404, 422])
def test_what_cannot_pass_is_not_tried_again(server: StandIn, status: int) -> None:
    server.script = lambda *_: Said(status, b"no such model")
    with pytest.raises(EndpointError, match=f"status {status}: no such model.*model's name"):
        asker(server).reply(ASKED)
    assert len(server.heard) == 1


def test_a_redirection_is_not_followed_to_another_host(server: StandIn) -> None:
    with standing_in() as elsewhere:
        server.script = lambda *_: Said(307, headers={"Location": f"{elsewhere.url}/chat/completions"})
        with pytest.raises(EndpointError, match="points elsewhere"):
            asker(server).reply(ASKED)
        assert elsewhere.heard == []


def test_no_proxy_of_the_environment_is_asked(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    with standing_in() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        asker(server).reply(ASKED)
        assert proxy.heard == []
    assert len(server.heard) == 1


def test_a_server_that_does_not_answer_in_time_is_tried_again_and_then_given_up(server: StandIn) -> None:
    server.script = lambda *_: Said(body=completion("late"), waits=server.closing)
    begun = time.monotonic()
    with pytest.raises(EndpointError, match=r"failed 2 times.*no answer within 0.2 s"):
        asker(server, timeout=0.2, retries=1).reply(ASKED)
    assert time.monotonic() - begun < 3
    assert len(server.heard) == 2


def test_a_server_that_sends_a_byte_at_a_time_does_not_outlast_the_deadline(server: StandIn) -> None:
    server.script = lambda *_: Said(body=completion("a long answer" * 20), drip=0.05)
    begun = time.monotonic()
    with pytest.raises(EndpointError, match=r"no answer within 0\.3 s"):
        asker(server, timeout=0.3, retries=0).reply(ASKED)
    assert time.monotonic() - begun < 3


def test_nobody_there_is_an_error_that_names_the_address() -> None:
    with standing_in() as server:
        chosen = settings(server, retries=0)
    with pytest.raises(EndpointError, match=chosen.base_url):
        LanguageModel(chosen, Endpoint(chosen)).reply(ASKED)


def questions(count: int) -> list[Question]:
    return [Question((("patient", f"咳嗽{number}天"),)) for number in range(count)]


def test_replies_come_in_the_order_of_the_questions_and_no_more_are_asked_at_once_than_allowed(server: StandIn) -> None:
    def script(heard: Heard, number: int) -> Said:
        time.sleep(0.02 if number % 3 else 0.05)
        return echo(heard, number)

    server.script = script
    found = asker(server, concurrency=3).replies(questions(12))
    assert found == [f"您说咳嗽{number}天，有没有发烧？" for number in range(12)]
    assert 2 <= server.most_at_once <= 3


def test_the_first_failure_ends_the_asking(server: StandIn) -> None:
    server.script = lambda heard, number: Said(400, b"no") if number == 5 else echo(heard, number)
    with pytest.raises(EndpointError):
        asker(server, concurrency=2).replies(questions(200))
    assert len(server.heard) < 20


def test_a_failure_wakes_those_that_pause(server: StandIn) -> None:
    refused = threading.Event()

    def script(heard: Heard, _: int) -> Said:
        if heard.body["messages"][-1]["content"] == "咳嗽0天":
            return Said(400, b"no", waits=refused)
        refused.set()
        return Said(500, b"wait", headers={"Retry-After": "60"})

    server.script = script
    chosen = settings(server, concurrency=2)
    begun = time.monotonic()
    with pytest.raises(EndpointError, match="refused"):
        LanguageModel(chosen, Endpoint(chosen)).replies(questions(2))
    assert time.monotonic() - begun < 10


def test_what_was_answered_once_is_not_asked_again_and_repeats_exactly(server: StandIn, tmp_path: Path) -> None:
    first = open_language_model(settings(server), tmp_path).replies(questions(4))
    server.script = lambda *_: Said(body=completion("another answer"))
    assert open_language_model(settings(server), tmp_path).replies(questions(4)) == first
    assert len(server.heard) == 4


@pytest.mark.parametrize("change", [{"model": "other"}, {"temperature": 0.5}, {"max_tokens": 9}, {"language": "en"}])
def test_another_setting_that_changes_the_answer_is_asked_anew(
    server: StandIn, tmp_path: Path, change: dict[str, Any]
) -> None:
    open_language_model(settings(server), tmp_path).reply(ASKED)
    open_language_model(settings(server, **change), tmp_path).reply(ASKED)
    assert len(server.heard) == 2


def test_two_endpoints_do_not_share_answers(tmp_path: Path) -> None:
    AnswerCache(tmp_path, "http://one/v1").put({"model": "m"}, Completion("一"))
    assert AnswerCache(tmp_path, "http://two/v1").get({"model": "m"}) is None
    assert AnswerCache(tmp_path, "http://one/v1").get({"model": "m"}) == Completion("一")


@pytest.mark.parametrize("damage", ["", "{", '{"request": {}}', '{"base_url": "x", "request": {}, "answer": {}}'])
def test_a_damaged_answer_is_refused_and_named(tmp_path: Path, damage: str) -> None:
    cache = AnswerCache(tmp_path, "x")
    cache.put({"model": "m"}, Completion("一"))
    (file,) = tmp_path.rglob("*.json")
    file.write_text(damage, encoding="utf-8")
    with pytest.raises(IntegrityError, match=f"{file.name}.*delete it"):
        cache.get({"model": "m"})


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_hint_is_told_with_the_instructions_part_by_part(language: str) -> None:
    hint = Hint(("咳嗽", "发烧"), "diagnosis", (), ("咳嗽 -[症状]-> 流感",))
    system = messages_of(Question(ASKED.said, hint), language)[0]["content"]
    words = HINTS[language]
    assert system.startswith(INSTRUCTIONS[language])
    for part in ("咳嗽" + words["between"] + "发烧", words["diagnosis"], words["none"], "咳嗽 -[症状]-> 流感"):
        assert part in system
    assert words["state"] not in messages_of(Question(ASKED.said, Hint()), language)[0]["content"]


def test_both_languages_have_words_for_the_same_things() -> None:
    assert HINTS["zh"].keys() == HINTS["en"].keys() >= set(CATEGORIES)
    assert INSTRUCTIONS.keys() == HINTS.keys()


def test_the_instructions_are_in_the_language_of_the_dialogue() -> None:
    assert language_of(ASKED) == "zh"
    assert language_of(Question((("patient", "I cough"),))) == "en"


def test_a_chat_always_ends_with_the_patient_and_never_has_two_turns_of_one_side() -> None:
    said: tuple[tuple[Speaker, str], ...]
    said = (("physician", "你好"), ("patient", ""), ("physician", "请说"), ("patient", "咳嗽"), ("patient", "发烧"))
    roles = [message["role"] for message in messages_of(Question(said), "zh")]
    assert roles == ["system", "assistant", "user"]
    assert [message["role"] for message in messages_of(Question(()), "en")] == ["system", "user"]


def test_a_reply_is_one_line_without_the_thoughts_before_it() -> None:
    assert reply_text("<think>\n可能是流感\n</think>\n\n 发烧吗？\n几天了？ ") == "发烧吗？ 几天了？"


@pytest.mark.parametrize(
    ("address", "changes", "problem"),
    [
        ("127.0.0.1:8000", {"model": "m"}, "is no address"),
        ("ftp://host/v1", {"model": "m"}, "is no address"),
        ("http://host:port/v1", {"model": "m"}, "is no address"),
        ("http://name:secret@host/v1", {"model": "m"}, "must hold no key"),
        ("http://host/v1?api_key=1", {"model": "m"}, "must hold no key"),
        ("http://host/v1", {}, "--llm-set model=NAME"),
        ("http://host/v1", {"model": "m", "timeout": 0}, "timeout must be a number"),
        ("http://host/v1", {"model": "m", "retries": 1.5}, "retries must be a number"),
        ("http://host/v1", {"model": "m", "concurrency": "many"}, "concurrency must be a number"),
        ("http://host/v1", {"model": "m", "language": "fr"}, "auto, zh, en"),
        ("http://host/v1", {"model": "m", "key": "k"}, "no setting 'key'"),
    ],
)
def test_a_setting_it_cannot_have_is_refused_with_the_way_out(
    address: str, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        EndpointSettings.of(address, changes)


def test_it_is_no_model_to_train(corpus: Corpus) -> None:
    with pytest.raises(UsageError, match="evaluate --llm"):
        build_model("llm", recipe("small"), corpus)
