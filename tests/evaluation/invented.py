"""Invented turns, and strategies that make more of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from vrbot.evaluation.embeddings import EntityVectors
from vrbot.evaluation.entities import EntitySets
from vrbot.evaluation.turns import Evidence, Latents, ScoredTurn

NUM_ENTITIES = 6
NAMES = ("咳嗽", "发热", "布洛芬", "血常规", "胃炎", "chest pain")

words = st.sampled_from(["咳嗽", "多久", "了", "吗", "chest pain", "fever", "，", "。", "1", "２"])
texts = st.lists(words, max_size=7).map(tuple)
text_pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=8)
entity_sets = st.frozensets(st.integers(0, NUM_ENTITIES - 1), max_size=4)
set_pairs = st.lists(st.tuples(entity_sets, entity_sets), min_size=1, max_size=10)
spans = st.none() | st.lists(st.integers(0, NUM_ENTITIES - 1), max_size=4).map(tuple)
latents = st.builds(Latents, state=spans, category=st.none() | st.integers(0, 3), keywords=spans)


def as_sets(pairs: Sequence[tuple[frozenset[int], frozenset[int]]]) -> list[EntitySets]:
    return [EntitySets(predicted, gold) for predicted, gold in pairs]


@st.composite
def scored_turns(draw: st.DrawFn, min_size: int = 1) -> list[ScoredTurn]:
    """Turns of a few dialogues with every field filled somehow."""
    return [
        ScoredTurn(
            session_id=f"d-{draw(st.integers(0, 3))}",
            turn=number,
            reply="".join(reply),
            reference="".join(reference),
            reply_words=reply,
            reference_words=reference,
            reply_entities=draw(entity_sets),
            reference_entities=draw(entity_sets),
            gold=draw(latents),
            previous_gold_state=draw(spans),
            prior=draw(latents),
            inference=draw(latents),
            evidence=draw(st.none() | st.builds(Evidence, context=entity_sets, reached=entity_sets)),
            log_prob=draw(st.none() | st.floats(-100, 0)),
            num_log_prob_tokens=draw(st.none() | st.integers(0, 9)),
        )
        for number, (reply, reference) in enumerate(
            draw(st.lists(st.tuples(texts, texts), min_size=min_size, max_size=5))
        )
    ]


def vectors(rows: Sequence[Sequence[float]]) -> EntityVectors:
    return EntityVectors(np.array(rows, dtype=np.float64), tuple("word" for _ in rows), "invented")


def spread_vectors() -> EntityVectors:
    return vectors(np.random.default_rng(3).standard_normal((NUM_ENTITIES, 4)).tolist())


def example_turns() -> list[ScoredTurn]:
    """Four turns of two dialogues, with labels and references that every metric can be measured on."""
    said = [
        ("d-1", ("咳嗽", "多久", "了", "？"), {0}, (0,), (), 0, (0,)),
        ("d-1", ("建议", "查", "血常规", "。"), {3}, (0, 1), (0,), 1, (3,)),
        ("d-2", ("可以", "吃", "布洛芬", "。"), {2}, (1,), (), 2, (2,)),
        ("d-2", ("不", "客气"), set(), (1,), (1,), 3, ()),
    ]
    return [
        ScoredTurn(
            session_id=session,
            turn=number,
            reply="",
            reference="".join(reference),
            reply_words=(),
            reference_words=reference,
            reference_entities=frozenset(entities),
            gold=Latents(state, category, keywords),
            previous_gold_state=previous,
            evidence=Evidence(frozenset(state), frozenset({2, 3})),
            log_prob=-8.0,
            num_log_prob_tokens=4,
        )
        for number, (session, reference, entities, state, previous, category, keywords) in enumerate(said)
    ]
