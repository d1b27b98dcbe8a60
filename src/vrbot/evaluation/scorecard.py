"""The scorecard of protocol `vrbot`: every metric of the paper's tables, and what else is worth knowing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from vrbot.errors import ConfigError
from vrbot.evaluation.diversity import distinct
from vrbot.evaluation.embeddings import EntityVectors, embedding_scores
from vrbot.evaluation.entities import EntitySets, macro_entity_scores, micro_entity_scores, most_frequent_entity
from vrbot.evaluation.explainability import explainability_scores
from vrbot.evaluation.latents import latent_scores, most_frequent_keyword
from vrbot.evaluation.likelihood import action_nats_score, perplexity_score
from vrbot.evaluation.overlap import bleu_2, bleu_2_score, rouge_2_score
from vrbot.evaluation.pooling import PooledScore
from vrbot.evaluation.turns import ScoredTurn

Value = float | int | str | None


@dataclass(frozen=True)
class Options:
    """The conventions that change figures; every report states them.

    `minimum_gold_count`: entities rarer than this in gold stay out of macro scores (the authors' rule "gold count > 5"
    is 6). `entityless_replies`: what a reply without entities counts in EA and EG where the reference has some.
    `references_without_pairs`: what a reference of fewer than two words counts in R@2.
    """

    stop_words: frozenset[str] = frozenset()
    minimum_gold_count: int = 1
    entityless_replies: Literal["zero", "skip"] = "zero"
    references_without_pairs: Literal["skip", "zero"] = "skip"

    def __post_init__(self) -> None:
        if self.minimum_gold_count < 1:
            raise ConfigError(f"minimum_gold_count must be at least 1, got {self.minimum_gold_count}")
        for name in ("entityless_replies", "references_without_pairs"):
            if getattr(self, name) not in ("zero", "skip"):
                raise ConfigError(f"{name} must be 'zero' or 'skip', got {getattr(self, name)!r}")

    def as_dict(self) -> dict[str, Value]:
        """For a report; of the stop words only their number."""
        return {
            "stop_words": len(self.stop_words),
            "minimum_gold_count": self.minimum_gold_count,
            "entityless_replies": self.entityless_replies,
            "references_without_pairs": self.references_without_pairs,
        }

    def stated(self) -> str:
        """The same as a sentence, to stand under a table."""
        words = f"{len(self.stop_words)} stop words removed" if self.stop_words else "no stop words removed"
        entityless = "count 0" if self.entityless_replies == "zero" else "are skipped"
        short = "count 0" if self.references_without_pairs == "zero" else "are skipped"
        return (
            f"{words}; macro scores over entities with at least {self.minimum_gold_count} gold occurrences; "
            f"replies without entities {entityless} in EA and EG; references of fewer than two words {short} in R@2"
        )


@dataclass(frozen=True)
class Resources:
    """What some metrics need beside the turns; without it they do not apply."""

    vectors: EntityVectors | None = None
    entity_names: Sequence[str] | None = None
    seconds: float | None = None  # spent on writing all replies


@dataclass(frozen=True)
class Scorecard:
    """Percentages 0-100, None where a metric does not apply; `more` holds what the paper's tables do not have."""

    protocol: ClassVar[str] = "vrbot"

    num_turns: int
    bleu_2: float | None
    rouge_2: float | None
    distinct_1: float | None
    distinct_2: float | None
    macro_precision: float | None
    macro_recall: float | None
    macro_f1: float | None
    micro_precision: float | None
    micro_recall: float | None
    micro_f1: float | None
    embedding_average: float | None
    embedding_greedy: float | None
    state_f1: float | None
    action_f1: float | None
    category_accuracy: float | None
    turns_per_second: float | None
    options: Options = field(default_factory=Options)
    more: Mapping[str, Value] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Everything under one flat set of keys, ready for JSON; `protocol` and `options` say how it was measured."""
        named = [part.name for part in fields(self) if part.name not in ("options", "more")]
        values = {name: getattr(self, name) for name in named}
        return {**values, **self.more, "protocol": self.protocol, "options": self.options.as_dict()}


def scorecard(
    turns: Sequence[ScoredTurn], options: Options | None = None, resources: Resources | None = None
) -> Scorecard:
    """All metrics of protocol `vrbot` over the turns of a split."""
    options, resources = options or Options(), resources or Resources()
    values: dict[str, Any] = {"mep_by_chance": None}
    values |= {name: score.value for name, score in measure(turns, options, resources).items()}
    replies = _words([turn.reply_words for turn in turns], options)
    values["bleu_2"] = bleu_2(replies, _words([turn.reference_words for turn in turns], options))
    values["distinct_1"], values["distinct_2"] = distinct(replies, 1), distinct(replies, 2)
    values["turns_per_second"] = len(turns) / resources.seconds if resources.seconds else None
    frequent = most_frequent_entity(turn.reference_entities for turn in turns)
    values["most_frequent_entity"] = _name(frequent, resources)
    values["most_frequent_keyword"] = _name(most_frequent_keyword(turns), resources)
    values |= _vector_notes(resources.vectors)
    named = {part.name for part in fields(Scorecard)}
    more = {name: value for name, value in values.items() if name not in named}
    main = {name: value for name, value in values.items() if name in named}
    return Scorecard(num_turns=len(turns), options=options, more=more, **main)


def measure(turns: Sequence[ScoredTurn], options: Options, resources: Resources) -> dict[str, PooledScore]:
    """Every metric that is a function of sums over turns, so all but D@1 and D@2; what significance tests resample."""
    replies = _words([turn.reply_words for turn in turns], options)
    references = _words([turn.reference_words for turn in turns], options)
    inference = latent_scores(turns, "inference")
    return {
        "bleu_2": bleu_2_score(replies, references),
        "rouge_2": rouge_2_score(replies, references, options.references_without_pairs),
        **_entity_measures(turns, options, resources),
        **latent_scores(turns, "prior"),
        "action_nats": action_nats_score(turns),
        "perplexity": perplexity_score(turns),
        **explainability_scores(turns, None if resources.entity_names is None else len(resources.entity_names)),
        **{f"inference_{name}": score for name, score in inference.items()},
    }


def _entity_measures(turns: Sequence[ScoredTurn], options: Options, resources: Resources) -> dict[str, PooledScore]:
    sets = [EntitySets(turn.reply_entities, turn.reference_entities) for turn in turns]
    micro, macro = micro_entity_scores(sets), macro_entity_scores(sets, options.minimum_gold_count)
    frequent = most_frequent_entity(turn.gold for turn in sets)
    measures = {
        "macro_precision": macro.precision,
        "macro_recall": macro.recall,
        "macro_f1": macro.f1,
        "micro_precision": micro.precision,
        "micro_recall": micro.recall,
        "micro_f1": micro.f1,
        "micro_f1_without_most_frequent": micro_entity_scores([turn.without(frequent) for turn in sets]).f1,
    }
    if resources.vectors is not None:
        similarity = embedding_scores(sets, resources.vectors, options.entityless_replies)
        measures |= {"embedding_average": similarity.average, "embedding_greedy": similarity.greedy}
    return measures


def _words(texts: Sequence[Sequence[str]], options: Options) -> list[list[str]]:
    """The words that count: no blanks, no stop words."""
    return [[word for word in text if word.strip() and word not in options.stop_words] for text in texts]


def _name(entity: int | None, resources: Resources) -> str | None:
    if entity is None:
        return None
    return str(entity) if resources.entity_names is None else resources.entity_names[entity]


def _vector_notes(vectors: EntityVectors | None) -> dict[str, Value]:
    """Where the entity vectors come from, and None for EA and EG without any."""
    if vectors is None:
        return {"embedding_average": None, "embedding_greedy": None, "vectors": None, "entities_without_vector": None}
    return {"vectors": vectors.source, "entities_without_vector": vectors.num_by_origin["unknown"]}
