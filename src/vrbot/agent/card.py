"""The card of a model: what it is, what it was trained on, how well it did, what it is for and what not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vrbot.baselines.catalogue import CATALOGUE
from vrbot.config import Config
from vrbot.dialogue.corpus import SPLITS, Corpus

INTENDED_USE = """\
Drafts of replies in text consultations, with the patient state and the physician action behind them, for physicians
to accept, change or reject, and for research.

It is not a medical device and gives no medical advice. A draft is not to reach a patient before a physician has read
and approved it; a medicine in it is a suggestion, never a prescription. The model knows what its training dialogues
and its graph hold and nothing else: other languages, departments, illnesses and ways to speak lead to replies that
read well and are wrong. It repeats habits and errors of the physicians it learned from. Probabilities and shares are
those of the model, not evidence. It does not recognise emergencies."""


@dataclass(frozen=True)
class Facts:
    """What a model is and how it came about; `labels` are the shares of dialogues whose labels were used.

    `scores` are those of the validation at training step `step`, the one with the best `measure`.
    """

    model: str
    parameters: int
    seed: int | None
    labels: Mapping[str, float]
    measure: str | None
    step: int | None
    scores: Mapping[str, float | None]
    version: str


def model_card(facts: Facts, config: Config, corpus: Corpus) -> str:
    """The card as Markdown."""
    network = config.network
    sizes = {
        "parameters": f"{facts.parameters:,}",
        "words": f"{len(corpus.vocabulary):,}",
        "entities": f"{len(corpus.inventory):,}",
        "graph": f"{corpus.graph.num_edges:,} triples in {len(corpus.graph.relations)} relations",
        "embedding and hidden size": f"{network.embedding_size}, {network.hidden_size}",
        "state and action length": f"{config.tracker.length}, {config.policy.length}",
        "hops in the graph": str(config.policy.hops),
        "segmenter": str(corpus.segmenter_settings[0]),
    }
    parts = [
        f"# {facts.model}",
        f"{_sentence(CATALOGUE[facts.model].idea)} Made with vrbot {facts.version}.",
        '```python\nfrom vrbot import VRBot\n\nagent = VRBot.from_pretrained("this folder")\n'
        'reply = agent.respond([("what the patient said", "")])\nprint(reply.text, reply.to_dict())\n```',
        "## Sizes\n\n" + _table(("what", "size"), sizes.items()),
        "## Training\n\n" + _training(facts, corpus),
        "## Validation\n\n" + _validation(facts),
        "## Intended use and limits\n\n" + INTENDED_USE,
        "## Files\n\n`manifest.json` holds the SHA-256 of every file; a model with a changed file is not loaded.",
    ]
    return "\n\n".join(parts) + "\n"


def _training(facts: Facts, corpus: Corpus) -> str:
    shares = ", ".join(f"{kind} of {share:.0%} of the dialogues" for kind, share in facts.labels.items() if share > 0)
    seed = "" if facts.seed is None else f" Seed: {facts.seed}."
    told = f"Labels used: {shares or 'none'}.{seed} Corpus fingerprint: `{corpus.fingerprint[:16]}`."
    splits: Mapping[str, Mapping[str, Any]] = corpus.manifest.counts.get("splits", {})
    columns = ("dialogues", "turns", "tokens", "dialogues_with_entities")
    rows = [(name, *(f"{splits[name].get(column, 0):,}" for column in columns)) for name in SPLITS if name in splits]
    return _table(("split", "dialogues", "turns", "words", "dialogues that name entities"), rows) + "\n\n" + told


def _validation(facts: Facts) -> str:
    scores = {name: score for name, score in facts.scores.items() if score is not None}
    if not scores:
        return "Not validated."
    chosen = f"Scores on the validation split after step {facts.step}, chosen for the best {facts.measure}."
    return chosen + "\n\n" + _table(("measure", "score"), [(name, f"{score:.2f}") for name, score in scores.items()])


def _table(header: tuple[str, ...], rows: Any) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _sentence(idea: str) -> str:
    return idea[:1].upper() + idea[1:] + "."
