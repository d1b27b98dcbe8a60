"""A tiny corpus and tiny models for the laws of the model: the dialogues are invented, the pipeline is the real one.

Letters: N rows (turns), L span positions, E entities, V words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from tests.nets.tiny_encoder import with_tiny_encoder
from vrbot.baselines.catalogue import CATALOGUE, build_model
from vrbot.config import Config, recipe
from vrbot.dialogue.batching import SessionBatch, TurnTargets, collate
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.formats import write_sessions
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.dialogue.preparation_knowledge import KnowledgeFiles
from vrbot.dialogue.session import CATEGORIES, Action, Session, Turn
from vrbot.model.contract import DialogueModel, Moment
from vrbot.model.habits import Habits, HabitTable, ngram_codes
from vrbot.model.keyword_scores import KeywordScores, SpanScores
from vrbot.model.spans import Span
from vrbot.model.vrbot import VRBot

MODELS = tuple(CATALOGUE)
ENTITIES = ("咳嗽", "发烧", "头痛", "腹泻", "止咳糖浆", "退热贴", "气管炎", "流感", "胸片", "乏力")
TRIPLES = (
    ("气管炎", "contains_symptom", "咳嗽"),
    ("流感", "contains_symptom", "发烧"),
    ("流感", "contains_symptom", "头痛"),
    ("流感", "contains_symptom", "乏力"),
    ("止咳糖浆", "to_treat", "气管炎"),
    ("退热贴", "to_treat", "流感"),
    ("气管炎", "check_item", "胸片"),
)
BACK = {"contains_symptom": "symptom_of", "to_treat": "treated_by", "check_item": "checked_for"}
BOTH_WAYS = (*TRIPLES, *((tail, BACK[relation], head) for head, relation, tail in TRIPLES))
ASK, DIAGNOSE, PRESCRIBE, CHAT = CATEGORIES

SETTINGS: Mapping[str, Any] = {
    "network.embedding_size": 12,
    "network.hidden_size": 16,
    "network.dropout": 0.0,
    "network.word_dropout": 0.0,
    "network.ngram_dropout": 0.0,
    "tracker.length": 4,
    "tracker.caution": 0.0,
    "policy.graph_size": 8,
    "policy.habits": 64,
    "policy.length": 3,
    "policy.subgraph_limit": 8,
    "objective.split_reconstruction": False,
    "objective.state_bound_weight": 1.0,
    "objective.policy_weight": 1.0,
    "objective.state_label_weight": 1.0,
    "decoding.beam": 1,
    "decoding.max_length": 12,
}

FORMS: Mapping[str, Mapping[str, Any]] = {
    "small": {},
    "soft": {"objective.straight_through": False, "network.readings": "fed"},
    "span": {"policy.form": "span"},
    "free": {
        "policy.form": "span",
        "policy.posterior": "free",
        "policy.order": "learned",
        "network.memory": "carried",
    },
    "paper": {
        "network.memory": "carried",
        "network.readings": "fed",
        "network.coverage": False,
        "tracker.generation_bias": 0.0,
        "tracker.ending_bias": 0.0,
        "tracker.order_bias": 0.0,
        "policy.form": "span",
        "policy.graph_score": "linear",
        "policy.standing": False,
        "policy.habits": 0,
        "policy.posterior": "free",
        "policy.order": "learned",
        "objective.straight_through": False,
        "objective.categories_by_form": False,
    },
}
"""The recipes' two ends, and what lies between them."""


def sessions() -> list[Session]:
    """One to four turns; some turns name nothing, one has no recorded reply, and one names what no graph knows."""
    return [
        _session(
            "cold",
            ("我咳嗽三天了", "有没有发烧，头痛？", ("咳嗽",), ASK, ("发烧", "头痛")),
            ("发烧，没有头痛", "考虑流感，查胸片。", ("咳嗽", "发烧", "头痛"), DIAGNOSE, ("流感", "胸片")),
            ("怎么办", "可以用退热贴，止咳糖浆。", ("咳嗽", "发烧", "头痛"), PRESCRIBE, ("退热贴", "止咳糖浆")),
            ("谢谢", "不客气。", ("咳嗽", "发烧", "头痛"), CHAT, ()),
        ),
        _session(
            "quiet",
            ("你好", "你好，请说。", (), CHAT, ()),
            ("乏力两天", "咳嗽吗？发烧吗？", ("乏力",), ASK, ("咳嗽", "发烧")),
        ),
        _session("stomach", ("昨天腹泻，乏力", "考虑流感。多喝水。", ("腹泻", "乏力"), DIAGNOSE, ("流感",))),
        _session(
            "long",
            ("孩子咳嗽，头痛", "气管炎，拍胸片。", ("咳嗽", "头痛"), DIAGNOSE, ("气管炎", "胸片")),
            (
                "胸片说是气管炎",
                "可以用止咳糖浆，退热贴。",
                ("咳嗽", "头痛", "气管炎"),
                PRESCRIBE,
                ("止咳糖浆", "退热贴"),
            ),
            ("好的，谢谢", "不客气。", ("咳嗽", "头痛", "气管炎"), CHAT, ()),
        ),
        _session(
            "unanswered", ("头痛，发烧", "多喝水。", ("头痛", "发烧"), CHAT, ()), ("咳嗽", "", ("咳嗽",), CHAT, ())
        ),
    ]


def _session(name: str, *turns: tuple[str, str, tuple[str, ...], str, tuple[str, ...]]) -> Session:
    return Session(
        name, tuple(Turn(said, answered, state, Action(kind, keys)) for said, answered, state, kind, keys in turns)
    )


def write_splits(folder: Path, told: Sequence[Session]) -> None:
    """The same sessions as every split; only those of the training split keep their names."""
    for split, before in (("train", ""), ("valid", "valid-"), ("test", "test-")):
        named = [dataclasses.replace(session, id=f"{before}{session.id}") for session in told]
        write_sessions(folder / f"{split}.jsonl", named)


def build_corpus(folder: Path, triples: Sequence[tuple[str, str, str]] = TRIPLES) -> Corpus:
    """The sessions above, prepared; every split holds them all."""
    source = folder / "source"
    write_splits(source, sessions())
    rows = ["HEAD,RELATION,TAIL", *(",".join(triple) for triple in triples)]
    (folder / "graph.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    names = ["entity,type", *(f"{name},symptom" for name in ENTITIES)]
    (folder / "entities.csv").write_text("\n".join(names) + "\n", encoding="utf-8")
    knowledge = KnowledgeFiles(graph=folder / "graph.csv", entities=folder / "entities.csv")
    prepare(source, folder / "corpus", PreparationSettings(knowledge=knowledge, minimum_count=1))
    return Corpus.open(folder / "corpus")


@pytest.fixture(scope="session", name="corpus")
def tiny_corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The corpus for every test of a session; a `conftest.py` that imports this gives it to its folder."""
    return build_corpus(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session", name="linked_corpus")
def tiny_linked_corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The same, every triple of its graph told from both ends."""
    return build_corpus(tmp_path_factory.mktemp("linked"), BOTH_WAYS)


def tiny_config(form: str = "small", **changes: Any) -> Config:
    """The tiny settings in one of the forms; further changes are written section__field=value."""
    dotted = {name.replace("__", "."): value for name, value in changes.items()}
    return recipe("small").with_settings({**SETTINGS, **FORMS[form], **dotted})


def config_for(name: str, config: Config) -> Config:
    """The same settings, with the tiny encoder where the model needs one and none is named."""
    needed = CATALOGUE[name].needs_encoder and config.pretrained.directory is None
    return with_tiny_encoder(config) if needed else config


def tiny_model(name: str, config: Config, corpus: Corpus, *, seed: int = 0, scale: float = 2.0) -> DialogueModel:
    """A model with fresh weights, larger than usual so that its distributions are far from flat; in eval mode."""
    config = config_for(name, config)
    torch.manual_seed(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vrbot.model.world.NGRAM_BUCKETS", 256)
        model = build_model(name, config, corpus)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1 and parameter.requires_grad:
                parameter.mul_(scale)
                if not parameter.any():  # what begins as nothing could hide a leak
                    torch.nn.init.normal_(parameter, std=0.5)
    if isinstance(habits := getattr(model, "habits", None), Habits):
        form_habits(habits, corpus)
    return cast(DialogueModel, model.eval())


def form_habits(habits: Habits, corpus: Corpus) -> None:
    """Habits that nobody taught, of every entity, about n-grams that are said."""
    codes = ngram_codes(batch_of(corpus).inputs.characters).unique()[1:]
    codes = codes[torch.linspace(0, len(codes) - 1, len(habits.ngrams)).long()].unique()
    entities = torch.arange(habits.num_entities)
    table = HabitTable(torch.randn(len(codes), len(entities)), torch.randn(len(entities)))
    habits.learn(codes, torch.ones(len(codes)), entities, table, ())


def tiny_vrbot(config: Config, corpus: Corpus, *, name: str = "vrbot", seed: int = 0, scale: float = 2.0) -> VRBot:
    model = tiny_model(name, config, corpus, seed=seed, scale=scale)
    assert isinstance(model, VRBot)
    return model


def batch_of(corpus: Corpus, chosen: Sequence[int] | None = None) -> SessionBatch:
    """These sessions of the training split, all labels known; the whole split if none are named."""
    return collate(corpus.split("train"), range(len(sessions())) if chosen is None else chosen)


def moment(seed: int = 0, *, step: int = 0, stage: int = 2) -> Moment:
    return Moment(step, stage, torch.Generator().manual_seed(seed))


def without_labels(batch: SessionBatch, rows: Tensor | None = None, kinds: Sequence[str] | None = None) -> SessionBatch:
    """The batch with the labels of these rows [N] and kinds gone, as `collate` leaves out what is not known."""
    chosen = torch.ones_like(batch.turn, dtype=torch.bool) if rows is None else rows
    changes: dict[str, Tensor] = {}
    for kind in ("state", "category", "keywords") if kinds is None else kinds:
        label, known = getattr(batch.targets, kind), getattr(batch.targets, f"{kind}_known")
        changes[kind] = torch.where(chosen if label.dim() == 1 else chosen.unsqueeze(1), -1, label)
        changes[f"{kind}_known"] = known & ~chosen
    return dataclasses.replace(batch, targets=dataclasses.replace(batch.targets, **changes))


def with_targets(batch: SessionBatch, **changes: Tensor) -> SessionBatch:
    targets: TurnTargets = dataclasses.replace(batch.targets, **changes)
    return dataclasses.replace(batch, targets=targets)


def rows_of(batch: SessionBatch, session_id: str) -> Tensor:
    """Which rows belong to a session [N]."""
    return batch.session == batch.session_ids.index(session_id)


def entity_id(corpus: Corpus, name: str) -> int:
    found = corpus.inventory.id_of(name)
    assert found is not None
    return found


def random_spans(num_rows: int, length: int, num_entities: int, seed: int) -> Span:
    """One-hot spans of distinct entities that end at any position."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.stack([torch.randperm(num_entities, generator=generator)[:length] for _ in range(num_rows)])
    ends = torch.randint(0, length + 1, (num_rows, 1), generator=generator)
    ids = torch.where(torch.arange(length) < ends, ids, num_entities)
    return Span(torch.nn.functional.one_hot(ids, num_entities + 1).float())


def keyword_log_probs(scores: KeywordScores) -> Tensor:
    """Keywords as distributions that must sum to one: over symbols [N, L, E+1], or named and not named [N, E, 2]."""
    if isinstance(scores, SpanScores):
        return scores.log_probs
    return torch.nn.functional.logsigmoid(torch.stack((scores.logits, -scores.logits), dim=-1))


def assert_normalised(log_probs: Tensor) -> None:
    """Every distribution over the last dimension sums to one."""
    mass = log_probs.detach().double().exp().sum(dim=-1)
    torch.testing.assert_close(mass, torch.ones_like(mass), atol=1e-5, rtol=0)
