"""Laws of saved models: what is loaded replies as what was saved, and nothing that changed is loaded."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import vrbot
from tests.agent.conftest import MakeAgent
from tests.model.tiny import FORMS, MODELS, batch_of, build_corpus, moment
from vrbot.agent.respond import Agent
from vrbot.baselines.catalogue import build_model
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import DataError, IntegrityError, UsageError, VRBotError
from vrbot.model.weights import model_to_bytes
from vrbot.training.checkpoints import RunFolder
from vrbot.training.runs import open_run

CONVERSATIONS = [
    [("我咳嗽三天了", "有没有发烧，头痛？"), ("发烧，没有头痛", "")],
    [("昨天腹泻，乏力", "")],
    [("", "")],
]


@pytest.fixture(scope="module")
def saved(make_agent: MakeAgent, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    make_agent().save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("name", "form"), [*((name, "small") for name in MODELS), *(("vrbot", form) for form in FORMS)]
)
def test_a_loaded_model_is_the_saved_one_to_the_last_bit(
    name: str, form: str, make_agent: MakeAgent, tmp_path: Path, corpus: Corpus
) -> None:
    agent = make_agent(name, form)
    agent.save_pretrained(tmp_path / "model")
    torch.manual_seed(5)
    before = torch.get_rng_state()
    again = Agent.from_pretrained(tmp_path / "model")
    assert torch.equal(torch.get_rng_state(), before)
    assert model_to_bytes(again._pretrained.model) == model_to_bytes(agent._pretrained.model)
    assert [again.respond(each) for each in CONVERSATIONS] == [agent.respond(each) for each in CONVERSATIONS]
    losses = [each._pretrained.model.loss(batch_of(corpus), moment()).total for each in (agent, again)]  # type: ignore[operator]
    assert torch.equal(*losses)
    place = {"pretrained.directory": again.config.pretrained.directory}  # an encoder is copied into the folder
    assert (again.facts, again.config) == (agent.facts, agent.config.with_settings(place))


def test_a_model_that_is_loaded_and_saved_again_is_the_same_folder(saved: Path, tmp_path: Path) -> None:
    Agent.from_pretrained(saved).save_pretrained(tmp_path / "again")
    files = {path.relative_to(saved): path.read_bytes() for path in saved.rglob("*") if path.is_file()}
    again = tmp_path / "again"
    assert {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()} == files


def test_a_saved_model_needs_nothing_but_its_folder(make_agent: MakeAgent, tmp_path: Path) -> None:
    corpus = build_corpus(tmp_path / "source")
    agent = make_agent()
    agent.save_pretrained(tmp_path / "model")
    shutil.rmtree(corpus.directory)
    (tmp_path / "model").rename(tmp_path / "elsewhere")
    again = Agent.from_pretrained(tmp_path / "elsewhere")
    assert again.respond(CONVERSATIONS[0]) == agent.respond(CONVERSATIONS[0])


def test_a_flipped_byte_in_any_file_is_refused(saved: Path, tmp_path: Path) -> None:
    names = sorted(path.relative_to(saved) for path in saved.rglob("*") if path.is_file())
    assert {str(name) for name in names} >= {"README.md", "config.yaml", "graph/targets.npy", "manifest.json"}
    luck = random.Random(1)
    for name in names:
        copy = tmp_path / "copy"
        shutil.copytree(saved, copy)
        content = bytearray((copy / name).read_bytes())
        content[luck.randrange(len(content))] ^= 1 << luck.randrange(8)
        (copy / name).write_bytes(content)
        with pytest.raises(IntegrityError):
            Agent.from_pretrained(copy)
        shutil.rmtree(copy)


@pytest.mark.parametrize("change", ["missing", "cut", "longer", "swapped"])
def test_a_missing_or_other_file_is_refused(change: str, saved: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(saved, tmp_path / "copy")
    weights = copy / "model.safetensors"
    match change:
        case "missing":
            weights.unlink()
        case "cut":
            weights.write_bytes(weights.read_bytes()[:-1])
        case "longer":
            weights.write_bytes(weights.read_bytes() + b"\0")
        case "swapped":
            shutil.copyfile(copy / "world.safetensors", weights)
    with pytest.raises(IntegrityError, match=r"model\.safetensors"):
        Agent.from_pretrained(copy)


def test_a_run_is_talked_to_through_its_best_model(run: Path, corpus: Corpus) -> None:
    agent = Agent.from_pretrained(run)
    description = open_run(run)
    trained = build_model(description.plan.model, description.plan.config, corpus)
    RunFolder(run).load_best(trained)
    assert model_to_bytes(agent._pretrained.model) == model_to_bytes(trained)
    assert agent.facts.seed == description.plan.seed
    assert agent.facts.labels == {"state": 1.0, "category": 1.0, "keywords": 1.0}
    assert agent.facts.parameters == description.parameters
    assert set(agent.facts.scores) == {"loss"}
    assert not agent._pretrained.model.training


def test_a_run_and_the_model_saved_from_it_reply_alike(run: Path, tmp_path: Path) -> None:
    agent = Agent.from_pretrained(run)
    agent.save_pretrained(tmp_path / "model")
    again = Agent.from_pretrained(tmp_path / "model")
    assert [again.respond(each) for each in CONVERSATIONS] == [agent.respond(each) for each in CONVERSATIONS]


def test_a_run_whose_corpus_has_moved_is_told_where_it_is(run: Path, corpus: Corpus, tmp_path: Path) -> None:
    moved = shutil.copytree(corpus.directory, tmp_path / "moved")
    agent = Agent.from_pretrained(run, corpus=moved)
    assert agent.respond(CONVERSATIONS[0]) == Agent.from_pretrained(run).respond(CONVERSATIONS[0])
    with pytest.raises(DataError, match="is not there"):
        Agent.from_pretrained(run, corpus=tmp_path / "nowhere")


def test_what_is_no_model_is_refused_with_a_way_out(run: Path, saved: Path, corpus: Corpus, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere", corpus.directory, run / "best"):
        with pytest.raises(UsageError, match="vrbot train"):
            Agent.from_pretrained(path)
    with pytest.raises(UsageError, match="leave out the corpus"):
        Agent.from_pretrained(saved, corpus=corpus.directory)
    unvalidated = shutil.copytree(run, tmp_path / "unvalidated")
    shutil.rmtree(unvalidated / "best")
    with pytest.raises(UsageError, match="no best model yet"):
        Agent.from_pretrained(unvalidated)


def test_a_folder_is_replaced_only_on_request_and_only_a_saved_model(make_agent: MakeAgent, tmp_path: Path) -> None:
    first, second = make_agent(seed=0), make_agent(seed=1)
    first.save_pretrained(tmp_path / "model")
    with pytest.raises(UsageError, match="already there"):
        second.save_pretrained(tmp_path / "model")
    second.save_pretrained(tmp_path / "model", overwrite=True)
    assert Agent.from_pretrained(tmp_path / "model").respond(CONVERSATIONS[0]) == second.respond(CONVERSATIONS[0])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(UsageError, match="not a saved model"):
        first.save_pretrained(tmp_path / "mine", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "model"]


def test_saving_that_fails_leaves_what_was_there(
    make_agent: MakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = make_agent()
    agent.save_pretrained(tmp_path / "model")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("vrbot.agent.pretrained.write_manifest", full)
    for folder in ("model", "other"):
        with pytest.raises(VRBotError, match="No space left"):
            agent.save_pretrained(tmp_path / folder, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    Agent.from_pretrained(tmp_path / "model")


def test_the_card_says_what_the_model_is_and_what_it_is_not_for(saved: Path) -> None:
    card = (saved / "README.md").read_text("utf-8")
    agent = Agent.from_pretrained(saved)
    assert agent.card == card
    assert card.startswith("# vrbot\n")
    for told in (
        f"{agent.facts.parameters:,}",
        "12.35",
        "state of 25% of the dialogues",
        "Seed: 7",
        "not a medical device",
    ):
        assert told in card
    assert "| train | 5 | 12 |" in card
    assert "bleu_2" not in card


def test_no_path_of_the_machine_is_saved(saved: Path, corpus: Corpus) -> None:
    for path in saved.rglob("*"):
        if path.is_file():
            assert str(corpus.directory.parent).encode() not in path.read_bytes()
    assert json.loads((saved / "model.json").read_text("utf-8"))["model"] == "vrbot"


def test_the_package_offers_the_agent_and_stays_light() -> None:
    assert vrbot.VRBot is Agent
    assert vrbot.agent.Agent is Agent
    with pytest.raises(AttributeError, match="imaginary"):
        _ = vrbot.imaginary
    check = "import sys, vrbot; assert 'torch' not in sys.modules; assert 'vrbot.agent' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
