"""Explanations of many turns, each checked against the graph, the texts and the model's own probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from vrbot.agent.replies import as_model, search
from vrbot.agent.respond import Conversation
from vrbot.dialogue.corpus import Corpus
from vrbot.explain.evidence import Evidence, Path, Place
from vrbot.explain.explainer import Explainer
from vrbot.explain.faithfulness import Kept, Trial, edges_of, try_paths, try_word
from vrbot.explain.keywords import Reasoning
from vrbot.explain.paths import Edges, Weights, attention_in, path_weights
from vrbot.explain.places import word_spans
from vrbot.explain.steering import Change, Perceived, perceive
from vrbot.knowledge.retrieval import Subgraph
from vrbot.model.keyword_scores import KeywordScores, SetScores

TOLERANCE = 1e-6
PATH_CHECKS = ("path exists", "path weight as used")
SHARE_CHECKS = ("word shares add up", "keyword shares add up", "state shares add up")
FAITHFUL = 0.9
"""The share of shown paths whose deletion must lower the keyword."""


@dataclass
class Count:
    """How many of those tried were good."""

    good: int = 0
    tried: int = 0

    def add(self, good: bool | None) -> None:
        """One more; None does not count."""
        if good is not None:
            self.good, self.tried = self.good + int(good), self.tried + 1

    @property
    def share(self) -> float | None:
        return self.good / self.tried if self.tried else None


@dataclass
class Audit:
    """What was found so far: checks that must hold always, and tests that should hold mostly."""

    num_turns: int = 0
    num_keywords: int = 0
    num_words: int = 0
    checks: dict[str, Count] = field(default_factory=dict)
    tests: dict[str, Count] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def check(self, name: str, good: bool, where: str) -> None:
        """A law; the first breaches are kept by name."""
        self.checks.setdefault(name, Count()).add(good)
        if not good and len(self.failures) < 20:
            self.failures.append(f"{where}: {name}")

    def test(self, name: str, good: bool | None) -> None:
        """An experiment."""
        self.tests.setdefault(name, Count()).add(good)

    @property
    def passed(self) -> bool:
        """Every check held, and deletion lowers often enough."""
        lowers = self.tests.get("deleting the shown path lowers the keyword", Count()).share
        return all(count.good == count.tried for count in self.checks.values()) and (
            lowers is None or lowers >= FAITHFUL
        )


def audit(
    explainer: Explainer,
    corpus: Corpus,
    split: str,
    num_turns: int | None = None,
    *,
    seed: int = 1,
    done: Callable[[int], None] | None = None,
) -> Audit:
    """Explains the turns of a split in order and checks every explanation; replies are searched for word by word."""
    report, random = Audit(), np.random.default_rng(seed)
    for index in range(corpus.split(split).num_sessions):
        if num_turns is not None and report.num_turns >= num_turns:
            break
        session = corpus.session(split, index)
        dialogue = _Dialogue.of(explainer, [(turn.patient, turn.physician) for turn in session.turns])
        for turn in range(len(session.turns)):
            if num_turns is not None and report.num_turns >= num_turns:
                break
            _Turn(explainer, dialogue, turn, f"{session.id} turn {turn + 1}").check(report, random)
            report.num_turns += 1
            if done is not None:
                done(1)
    return report


@dataclass(frozen=True, eq=False)
class _Dialogue:
    """A whole dialogue as the model goes through it, all turns at once: the other route to what is shown of each."""

    said: Conversation
    perceived: Perceived
    used: torch.Tensor | None  # [N, L] probabilities of the keywords
    words: tuple[tuple[int, ...], ...]

    @classmethod
    @torch.no_grad()
    def of(cls, explainer: Explainer, said: Conversation) -> _Dialogue:
        model, decoding = explainer.model, explainer.agent.config.decoding
        perceived = perceive(model, explainer.agent.hear(said), Change(), explainer.agent.pretrained.corpus.inventory)
        greedy = decoding.model_copy(update={"beam": 1})
        decoded = search(as_model(model), perceived.perception, torch.arange(len(said)), greedy)
        pairs = zip(decoded.tokens[:, 0], decoded.lengths[:, 0].tolist(), strict=True)
        words = tuple(tuple(tokens[:length].tolist()) for tokens, length in pairs)
        return cls(said, perceived, _probabilities_used(explainer, perceived) if explainer.has_action else None, words)

    def until(self, turn: int) -> list[tuple[str, str]]:
        """What was said before the answer of a turn."""
        return [*self.said[:turn], (self.said[turn][0], "")]


class _Turn:
    """One turn under audit."""

    def __init__(self, explainer: Explainer, dialogue: _Dialogue, turn: int, where: str) -> None:
        self._explainer, self._dialogue, self._row, self._where = explainer, dialogue, turn, where
        self._conversation = dialogue.until(turn)
        self._reply = explainer.what_if(self._conversation, Change(), words=dialogue.words[turn])
        assert isinstance(self._reply.evidence, Evidence)
        self._evidence: Evidence = self._reply.evidence
        self._corpus = explainer.agent.pretrained.corpus

    def check(self, report: Audit, random: np.random.Generator) -> None:
        """Everything that can be checked about this turn."""
        evidence = self._evidence
        report.num_words += len(evidence.words)
        report.num_keywords += len(evidence.keywords or ())
        self._check_shares(report)
        self._check_copies(report)
        self._check_keywords(report, random)
        self._try_a_word(report, random)

    def _check_shares(self, report: Audit) -> None:
        evidence = self._evidence
        totals = {
            SHARE_CHECKS[0]: [w.generated + sum(copy.share for copy in w.copies) for w in evidence.words],
            SHARE_CHECKS[1]: [k.from_conversation + k.from_graph for k in evidence.keywords or ()],
            SHARE_CHECKS[2]: [
                s.generated + s.remembered + sum(mention.share for mention in s.mentions)
                for s in evidence.state or ()
                if s.status != "dropped"
            ],
        }
        for name, values in totals.items():
            for value in values:
                report.check(name, math.isclose(value, 1.0, abs_tol=TOLERANCE), self._where)

    def _check_copies(self, report: Audit) -> None:
        """Whether each copied word stands where it is said to come from."""
        sources = {
            "state": {entity.name for entity in self._reply.state or ()},
            "action": {keyword.name for keyword in self._reply.keywords or ()},
        }
        for word in self._evidence.words:
            for copy in word.copies:
                there = (
                    copy.text == word.text in sources[copy.source]
                    if copy.source != "context"
                    else copy.place is not None and self._word_at(copy.place) == word.text
                )
                report.check("copied word in its source", there, self._where)

    def _word_at(self, place: Place) -> str:
        text = self._conversation[place.turn][0 if place.speaker == "patient" else 1]
        return self._corpus.vocabulary.words[int(self._corpus.encoder.encode([text]).tokens[place.word])]

    def _check_keywords(self, report: Audit, random: np.random.Generator) -> None:
        reasoning = Reasoning.of(self._explainer.model, self._dialogue.perceived.perception, self._row)
        if reasoning is None or self._evidence.keywords is None or self._dialogue.used is None:
            return
        used = self._dialogue.used[self._row]
        subgraph = reasoning.subgraph
        attention = None if subgraph is None else attention_in(reasoning.encoder, subgraph)
        trials: dict[str, list[tuple[int, Edges]]] = {"shown path": [], "most attended path": []}
        for position, keyword in enumerate(self._evidence.keywords):
            same = abs(float(used[position]) - keyword.probability) <= TOLERANCE
            report.check("keyword probability as used", same, self._where)
            if subgraph is None or attention is None:
                continue
            shown = [self._check_path(report, subgraph, attention, path) for path in keyword.paths]
            if shown and shown[0] is not None:
                trials["shown path"].append((position, shown[0]))
            # the path with the most attention, whether it is shown or not: what attention alone would tell
            if paths := reasoning.paths(int(reasoning.keywords[0, position])):
                widest = paths[int(np.argmax(path_weights(subgraph, attention, paths)))]
                trials["most attended path"].append((position, widest))
        tried = try_paths(reasoning, [each for of_kind in trials.values() for each in of_kind], random)
        kinds = [what for what, of_kind in trials.items() for _ in of_kind]
        for what, trial in zip(kinds, tried, strict=True):
            _count(report, what, "keyword", trial)

    def _check_path(self, report: Audit, subgraph: Subgraph, attention: Weights, path: Path) -> Edges | None:
        """A shown path is in the graph, begins in the state, and has the weights that were used; its edges."""
        edges = edges_of(subgraph, path, self._corpus.graph.relations, self._corpus.inventory)
        begins = edges is not None and subgraph.hops[subgraph.sources[edges[0]]] == 0
        report.check(PATH_CHECKS[0], bool(begins) and _in_graph(self._corpus, path), self._where)
        if edges is None:
            return None
        weight = path_weights(subgraph, attention, [edges])[0]
        gaps = [*np.abs(attention[:, list(edges)].T - np.array(path.attention)).flat, abs(weight - path.weight)]
        report.check(PATH_CHECKS[1], max(gaps) <= TOLERANCE, self._where)
        return edges

    def _try_a_word(self, report: Audit, random: np.random.Generator) -> None:
        """The reply's word that owes most to one word of the context."""
        copies = [(copy.share, index, copy.place) for index, word in enumerate(self._evidence.words)
                  for copy in word.copies if copy.place is not None]  # fmt: skip
        if not copies or (best := max(copies, key=lambda copy: copy[0]))[0] < 0.5:
            return
        _, index, place = best
        assert place is not None
        text = self._conversation[place.turn][0 if place.speaker == "patient" else 1]
        others = [at for at in self._words_of(text, place) if (at.start, at.end) != (place.start, place.end)]
        another = others[int(random.integers(len(others)))] if others else None
        vocabulary = self._corpus.vocabulary
        words = vocabulary.written(vocabulary.id_of(word.text) for word in self._evidence.words)
        kept = Kept.of(self._dialogue.perceived, self._row)
        trial = try_word(self._explainer, self._conversation, words, index, place, another, kept)
        _count(report, "source word", "word", trial)

    def _words_of(self, text: str, place: Place) -> list[Place]:
        spans = word_spans(text, self._corpus.encoder)
        return [Place(place.speaker, place.turn, number, *span) for number, span in enumerate(spans)]


def _count(report: Audit, what: str, of: str, tested: Trial) -> None:
    report.test(f"deleting the {what} lowers the {of}", tested.deletion_lowers)
    report.test(f"... more than another of its length ({what})", tested.lowers_more_than_another)
    report.test(f"the {what} alone raises the {of}", tested.insertion_raises)


def _probabilities_used(explainer: Explainer, perceived: Perceived) -> torch.Tensor:
    """The keywords' probabilities in all turns together, as the policy decides [N, L]."""
    model = explainer.model
    policy: Any = model.prior_policy
    keywords = perceived.perception.conditions.action.keywords
    ids = keywords.ids.clamp_max(model.table.num_entities - 1)
    with torch.no_grad():
        evidence = model.policy_evidence(perceived.heard, perceived.states)
        scores: KeywordScores = policy.decide(evidence, model.action_length, model.decide).scores.keywords
    if isinstance(scores, SetScores):
        return scores.logits.sigmoid().gather(1, ids)
    return scores.log_probs.gather(2, ids.unsqueeze(2)).squeeze(2).exp()


def _in_graph(corpus: Corpus, path: Path) -> bool:
    """Whether every edge of a path is an edge of the whole graph."""
    graph, ids = corpus.graph, [corpus.inventory.id_of(name) for name in path.entities]
    for source, relation, target in zip(ids, path.relations, ids[1:], strict=False):
        if source is None or target is None:
            return False
        edges = slice(int(graph.offsets[source]), int(graph.offsets[source + 1]))
        match = graph.targets[edges] == target
        if not (match & (graph.relation_ids[edges] == graph.relations.index(relation))).any():
            return False
    return True
