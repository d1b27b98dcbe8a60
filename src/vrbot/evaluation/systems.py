"""Runs and saved models as systems to measure, on a corpus that fits them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from vrbot.agent.pretrained import load_pretrained
from vrbot.config import Config
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.training.runs import open_run

RUN = "run.json"


@dataclass(frozen=True, eq=False)
class System:
    """A trained model, its settings, and the corpus it is measured on."""

    kind: str  # its name in the catalogue
    model: torch.nn.Module
    config: Config
    corpus: Corpus


def open_system(run: Path, corpus: Path | None = None) -> System:
    """The best model of a run (or a saved model), to be measured on `corpus`, else on the corpus it learnt from.

    Refuses a corpus with other words, entities or graph, and says how to prepare one that fits.
    """
    own, moved = _own_corpus(run), False
    if own is not None:
        _refuse_another(run, own.fingerprint, own.directory, corpus)
        moved = not own.directory.is_dir()
    loaded = load_pretrained(run, corpus if moved else None)
    chosen = loaded.corpus if corpus is None else Corpus.open(corpus)
    if chosen.fingerprint != loaded.corpus.fingerprint:
        raise UsageError(_other_corpus(run, chosen.directory, loaded.corpus.directory))
    if not chosen.split_names:
        raise UsageError(f"{run} holds a model and no dialogues: say what to measure it on with --corpus")
    return System(loaded.facts.model, loaded.model, loaded.config, chosen)


@dataclass(frozen=True)
class _OwnCorpus:
    directory: Path
    fingerprint: str


def _own_corpus(run: Path) -> _OwnCorpus | None:
    """The corpus a run was trained on; None for a saved model."""
    if not (run / RUN).is_file():
        return None
    description = open_run(run)
    return _OwnCorpus(description.plan.corpus, description.corpus_fingerprint)


def _refuse_another(run: Path, fingerprint: str, own: Path, corpus: Path | None) -> None:
    if corpus is not None and Corpus.open(corpus).fingerprint != fingerprint:
        raise UsageError(_other_corpus(run, corpus, own))


def _other_corpus(run: Path, corpus: Path, own: Path) -> str:
    return (
        f"{corpus} has other words, entities or graph than the corpus of {run}: prepare its dialogues to fit with "
        f"`vrbot prepare SOURCE --out {corpus}-like --like {own}` and evaluate on that"
    )
