"""Laws of showing: text in both languages, pictures that repeat, a note with its turns, and the verb itself."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from matplotlib import font_manager

from tests.agent.conftest import MakeAgent
from tests.explain.conftest import CONVERSATION
from tests.real_data import missing
from vrbot.cli.main import run
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.explain.explainer import Explainer
from vrbot.explain.note import as_fhir, as_markdown, consultation_note, write_note
from vrbot.explain.picture import CJK_FONTS, chinese_font, draw
from vrbot.explain.readable import WORDS, readable
from vrbot.explain.steering import Change

CHANGE = Change(state=("咳嗽", "发烧"), category="diagnosis", keywords=("气管炎", "胸片"))


def test_both_languages_name_the_same_things() -> None:
    assert set(WORDS["zh"]) == set(WORDS["en"])


@pytest.mark.parametrize(
    ("language", "expected"), [("zh", ("回复", "关键词", "人工给定")), ("en", ("reply", "keywords", "given"))]
)
def test_an_explanation_can_be_read(language: str, expected: tuple[str, ...], make_agent: MakeAgent) -> None:
    reply = Explainer(make_agent("vrbot", "span")).what_if(CONVERSATION, CHANGE)
    text = "\n".join(readable(reply, language))
    assert all(label in text for label in expected)
    assert reply.text in text
    assert "气管炎" in text
    with pytest.raises(UsageError, match="unknown language 'fr'"):
        readable(reply, "fr")


def test_control_characters_do_not_reach_the_terminal(make_agent: MakeAgent) -> None:
    reply = Explainer(make_agent()).respond([("咳嗽\x1b[31m\x07", "")])
    assert all(line.isprintable() or not line for line in readable(reply, "en"))


@pytest.mark.parametrize("name", ["why.png", "why.svg"])
def test_a_picture_is_the_same_each_time_and_its_folder_is_made(
    name: str, make_agent: MakeAgent, tmp_path: Path
) -> None:
    reply = Explainer(make_agent("vrbot", "span")).what_if(CONVERSATION, CHANGE)
    pictures = []
    for folder in ("a", "b"):
        draw(reply, CONVERSATION, tmp_path / folder / name, "zh")
        pictures.append((tmp_path / folder / name).read_bytes())
    assert pictures[0] == pictures[1]
    assert len(pictures[0]) > 10_000


def test_a_missing_chinese_font_is_said(
    make_agent: MakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("vrbot.explain.picture.CJK_FONTS", ("No Such Font",))
    reply = Explainer(make_agent()).respond(CONVERSATION)
    with caplog.at_level(logging.WARNING), pytest.warns(UserWarning, match="missing from font"):
        draw(reply, CONVERSATION, tmp_path / "why.png", "en")
    assert "fonts-noto-cjk" in caplog.text


def test_a_font_that_was_installed_after_matplotlib_made_its_list_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    now = chinese_font()
    if now is None:
        missing("no font that can write Chinese: run `make test-programs` as root")
    fonts = font_manager.fontManager.ttflist
    later = {font.fname for font in fonts if font.name in CJK_FONTS}
    former = [font for font in fonts if font.fname not in later]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", former)
    assert chinese_font() == now


def test_a_picture_of_another_kind_is_refused(make_agent: MakeAgent, tmp_path: Path) -> None:
    reply = make_agent().respond(CONVERSATION)
    with pytest.raises(UsageError, match=r"neither a \.png nor a \.svg"):
        draw(reply, CONVERSATION, tmp_path / "why.gif", "zh")
    with pytest.raises(UsageError, match="no evidence to draw"):
        draw(reply, CONVERSATION, tmp_path / "why.png", "zh")


def test_a_note_says_in_which_turn_each_item_came_up(make_agent: MakeAgent, tmp_path: Path) -> None:
    explainer = Explainer(make_agent())
    note = consultation_note(explainer, CONVERSATION)
    states = [explainer.agent.respond(CONVERSATION[: turn + 1]).state or () for turn in range(len(CONVERSATION))]
    for item in note.section("complaints"):
        named = [item.name in {entity.name for entity in state} for state in states]
        assert named.index(True) == item.turn - 1
        assert (item.dropped is None) == named[-1]
    assert note.section("complaints")
    assert note.num_turns == 3
    resources = [entry["resource"] for entry in as_fhir(note)["entry"]]
    assert len(resources) == len(note.items)
    assert all(resource["resourceType"] == "Condition" for resource in resources)
    for language, title in (("zh", "问诊记录"), ("en", "Consultation note")):
        write_note(note, tmp_path / f"{language}.md", language)
        text = (tmp_path / f"{language}.md").read_text(encoding="utf-8")
        assert text == as_markdown(note, language)
        assert title in text
        assert all(item.name in text for item in note.items)
    write_note(note, tmp_path / "note.json", "zh")
    assert json.loads((tmp_path / "note.json").read_text(encoding="utf-8")) == as_fhir(note)
    with pytest.raises(UsageError, match=r"neither a \.md"):
        write_note(note, tmp_path / "note.pdf", "zh")


@pytest.fixture(scope="module")
def saved(make_agent: MakeAgent, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    make_agent(seed=2).save_pretrained(folder)
    return folder


def test_the_verb_explains_one_turn(
    saved: Path, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {kind: tmp_path / f"why.{kind}" for kind in ("svg", "json", "md")}
    which = ["--corpus", str(corpus.directory), "--dialogue", "cold", "--turn", "2"]
    outputs = ["--svg", str(files["svg"]), "--json", str(files["json"]), "--note", str(files["md"])]
    assert run(["explain", str(saved), *which, *outputs, "--language", "en", "--keywords", "流感，胸片"]) == 0
    shown = capsys.readouterr().out
    assert "patient 2: 发烧，没有头痛" in shown
    assert "given, not inferred: keywords" in shown
    assert all(path.stat().st_size for path in files.values())
    content = json.loads(files["json"].read_text(encoding="utf-8"))
    assert {keyword["name"] for keyword in content["evidence"]["keywords"]} == {"流感", "胸片"}


def test_the_verb_audits_and_writes_a_guard_that_it_reads_again(
    saved: Path, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guard, report = tmp_path / "guard.json", tmp_path / "audit.json"
    audited = ["--audit", str(corpus.directory), "--turns", "3", "--guard", str(guard), "--json", str(report)]
    pictures = {kind: tmp_path / "new" / f"confidence.{kind}" for kind in ("png", "svg")}
    drawn = [part for kind, path in pictures.items() for part in (f"--{kind}", str(path))]
    assert run(["explain", str(saved), *audited, *drawn]) == 0
    assert pictures["png"].stat().st_size > 10_000
    assert "<svg" in pictures["svg"].read_text(encoding="utf-8")
    assert "the explanations are true" in capsys.readouterr().out
    content = json.loads(report.read_text(encoding="utf-8"))
    assert content["passed"] is True
    assert content["num_turns"] == 3
    assert content["confidence"]["after"]["error"] <= 1.0
    which = ["--corpus", str(corpus.directory), "--dialogue", "cold", "--guard", str(guard)]
    assert run(["explain", str(saved), *which]) == 0
    assert "置信度" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "say which turn to explain"),
        (["--dialogue", "nobody"], "there is no dialogue 'nobody'"),
        (["--dialogue", "cold", "--turn", "9"], "dialogue cold has 4 turns"),
        (["--dialogue", "cold", "--png", "why.svg"], "does not end in .png"),
        (["--dialogue", "cold", "--language", "fr"], "unknown language"),
        (["--dialogue", "0", "--turns", "2"], "--turns is how many turns --audit checks"),
    ],
)
def test_wrong_use_is_told(
    arguments: list[str], complaint: str, saved: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", str(saved), "--corpus", str(corpus.directory), *arguments]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", ["--corpus", "--dialogue", "--turn", "--language", "--state", "--category", "--keywords", "--note"]
)
def test_what_asks_about_one_turn_is_refused_in_an_audit(
    option: str, saved: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    audited = ["--audit", str(corpus.directory), "--turns", "1"]
    assert run(["explain", str(saved), *audited, option, "1", "--split", "valid"]) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert complaint.endswith(f": leave out {option}\n")
