"""A small model with everything a trainer must get right, and a small corpus of invented dialogues."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tests.dialogue.invented import invented_sessions, write_knowledge_files
from vrbot.config import Config
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.formats import write_sessions
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.dialogue.preparation_knowledge import KnowledgeFiles
from vrbot.model.contract import BatchLoss, Moment
from vrbot.training.loop import Validate

SETTINGS = {
    "network.embedding_size": 8,
    "network.max_context": 12,
    "network.max_response": 6,
    "training.batch_size": 6,
    "training.max_rows": 30,
    "training.shards": 2,
    "training.max_epochs": 3,
    "training.stage_one_epochs": 1.2,
    "training.validate_every_epochs": 0.7,
    "training.patience": 20,
    "training.average_decay": 0.9,
    "training.weight_decay": 0.01,
    "training.checkpoint_every_steps": 3,
}


class FakeModel(nn.Module):
    """Predicts the words of a response from the bag of words before it.

    It has dropout, noise from the generator, shared weights, a buffer for calibration, and a part for stage 2 only.
    """

    def __init__(self, num_words: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_words, size, padding_idx=0)
        self.dropout = nn.Dropout(0.3)
        self.noise = 0.1
        self.hidden = nn.Linear(size, size)
        self.second = nn.Linear(size, size)
        self.output = nn.Linear(size, num_words)
        self.output.weight = self.embedding.weight
        self.calibration: Tensor
        self.register_buffer("calibration", torch.zeros(()))

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        context = batch.inputs.context
        present = (context > 0)[:, :, None]
        rows = (self.embedding(context) * present).sum(dim=1) / batch.inputs.context_lengths[:, None]
        noise = torch.randn(rows.shape, generator=moment.generator)
        features = torch.tanh(self.hidden(self.dropout(rows) + self.noise * noise)) + 0.01 * self.calibration
        if moment.stage == 2:
            features = features + self.second(features)
        response = batch.targets.response
        logits = self.output(features)[:, None, :].expand(-1, response.shape[1], -1)
        costs = cross_entropy(logits.flatten(0, 1), response.flatten(), ignore_index=0, reduction="none")
        per_row = costs.view_as(response).sum(dim=1)
        penalty = 0.01 * features.square().sum(dim=1)
        per_session = torch.zeros(len(batch.session_ids)).index_add(0, batch.session, (per_row + penalty).detach())
        terms = {"words": per_row.sum().detach(), "penalty": penalty.sum().detach()}
        return BatchLoss((per_row + penalty).sum(), len(response), terms, per_session)


def build_fake(name: str, config: Config, corpus: Corpus) -> FakeModel:
    return FakeModel(len(corpus.vocabulary.words), config.network.embedding_size)


def fake_validation(corpus: Corpus, config: Config) -> Validate:
    """A score from weights, calibration and torch's own random numbers; moves the calibration."""

    def validate(model: nn.Module) -> Mapping[str, float | None]:
        assert isinstance(model, FakeModel)
        model.calibration += model.hidden.weight.mean()
        noise = float(torch.rand(()))
        return {"micro_f1": float(model.embedding.weight.abs().mean()) + 1e-3 * noise, "bleu_2": None}

    return validate


def fake_config(**changes: object) -> Config:
    """The settings above, with changes such as `max_epochs=1` of the section `training`."""
    return Config().with_settings({**SETTINGS, **{f"training.{name}": value for name, value in changes.items()}})


def write_fake_corpus(folder: Path, num_sessions: int = 30) -> Path:
    """A prepared corpus in `folder/corpus`."""
    source, knowledge = folder / "source", folder / "knowledge"
    source.mkdir(parents=True)
    knowledge.mkdir()
    for seed, (split, size) in enumerate({"train": num_sessions, "valid": 8, "test": 4}.items()):
        write_sessions(source / f"{split}.jsonl", invented_sessions(size, seed, split))
    settings = PreparationSettings(knowledge=KnowledgeFiles(**write_knowledge_files(knowledge)))
    prepare(source, folder / "corpus", settings)
    return folder / "corpus"


def fake_choice(model: torch.nn.Module, corpus: Corpus, config: Config) -> dict[str, float]:
    return {"word_reward": 0.4}
