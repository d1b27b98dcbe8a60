"""Laws of CCM: what it retrieves, what its attentions and its gate do, and what it does where there is no fact."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tests.model.tiny import (
    assert_normalised,
    batch_of,
    entity_id,
    moment,
    rows_of,
    tiny_config,
    tiny_model,
    with_targets,
)
from vrbot.baselines.ccm import CCM, TriplePointer
from vrbot.config import Config
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.vocabulary import BOS, EOS
from vrbot.knowledge.graph import Graph
from vrbot.nets.one_hop import TripleTable, latest_entities
from vrbot.nets.word_or_entity import Sources

forms = pytest.mark.parametrize("form", ["small", "paper"])


def ccm(corpus: Corpus, config: Config | None = None) -> CCM:
    model = tiny_model("ccm", config or tiny_config(), corpus)
    assert isinstance(model, CCM)
    return model


def without_mentions(inputs: TurnInputs) -> TurnInputs:
    nothing = torch.full_like(inputs.mention_entities, -1)
    return replace(inputs, mention_entities=nothing, mention_positions=nothing)


def neighbours(corpus: Corpus, entity: int) -> set[int]:
    graph = corpus.graph
    return set(graph.targets[graph.offsets[entity] : graph.offsets[entity + 1]].tolist())


def slots_of(corpus: Corpus, sources: Sources, row: int) -> set[str]:
    words = sources.slot_words[row][sources.slot_mask[row]].tolist()
    return {corpus.vocabulary.words[word] for word in words}


def outputs_like(model: CCM, num_rows: int, num_positions: int = 3) -> Tensor:
    random = torch.Generator().manual_seed(5)
    return 3 * torch.randn(num_rows, num_positions, model.encoder.hidden_size, generator=random)


@torch.no_grad()
def test_a_row_can_point_at_the_tails_of_its_contexts_entities_and_at_nothing_else(corpus: Corpus) -> None:
    batch = batch_of(corpus)
    sources = ccm(corpus).read(batch.inputs)
    seen: list[set[str]] = []
    for row, entities in enumerate(batch.inputs.mention_entities.tolist()):
        tails = {tail for entity in entities if entity >= 0 for tail in neighbours(corpus, entity)}
        seen.append({corpus.inventory.names[tail] for tail in tails})
        assert slots_of(corpus, sources, row) == seen[-1]
    assert {"发烧", "头痛", "乏力"} in seen
    assert set() in seen


@torch.no_grad()
def test_dynamic_attention_sums_to_one_over_the_triples_there_are(corpus: Corpus) -> None:
    model, batch = ccm(corpus), batch_of(corpus)
    sources = model.read(batch.inputs)
    outputs = outputs_like(model, len(batch.turn))
    mass = model.writer.pointer(outputs, sources.pointed, sources.slot_mask).exp()
    retrieved = sources.slot_mask.any(dim=1)
    assert retrieved.any()
    assert not retrieved.all()
    torch.testing.assert_close(mass.sum(dim=-1), retrieved.float().unsqueeze(1).expand(-1, 3))
    assert (mass > 0).eq(sources.slot_mask.unsqueeze(1).expand_as(mass)).all()


@torch.no_grad()
def test_a_triples_weight_is_its_graphs_times_its_own_inside_the_graph(corpus: Corpus) -> None:
    model, batch = ccm(corpus), batch_of(corpus)
    graphs = model.read(batch.inputs).pointed
    outputs, pointer = outputs_like(model, len(batch.turn)), model.writer.pointer
    assert isinstance(pointer, TriplePointer)
    attention = pointer.attention
    joint = attention.triple_log_weights(outputs, graphs).exp().unflatten(2, graphs.triple_mask.shape[1:])
    torch.testing.assert_close(joint.sum(dim=-1), attention.graph_log_weights(outputs, graphs).exp())


@torch.no_grad()
def test_static_attention_sums_to_one_in_each_graph_and_a_graph_without_triples_is_no_fact(corpus: Corpus) -> None:
    model = ccm(corpus)
    around = model.triples(torch.tensor([entity_id(corpus, "流感"), entity_id(corpus, "咳嗽"), -1]))
    weights, vectors = model.static.log_weights(around).exp(), model.static(around)
    for entity, has_triples in (("流感", True), ("咳嗽", False)):
        place = around.places(torch.tensor(entity_id(corpus, entity)))
        assert weights[place].sum().item() == pytest.approx(float(has_triples), abs=1e-6)
        assert torch.equal(vectors[place], model.static.no_fact) is not has_triples
    assert torch.equal(vectors[0], model.static.no_fact)


@torch.no_grad()
def test_a_word_is_read_with_the_graph_of_its_entity_and_other_words_with_no_fact(corpus: Corpus) -> None:
    model, batch = ccm(corpus), batch_of(corpus)
    inputs = batch.inputs
    around = model.triples(inputs.mention_entities)
    static = model.static(around)
    vectors = model.graph_of_words(inputs, around, static)
    is_entity = torch.zeros_like(inputs.context, dtype=torch.bool)
    for row, (entities, positions) in enumerate(
        zip(inputs.mention_entities.tolist(), inputs.mention_positions.tolist(), strict=True)
    ):
        for entity, position in zip(entities, positions, strict=True):
            if entity >= 0:
                is_entity[row, position] = True
                torch.testing.assert_close(vectors[row, position], static[around.places(torch.tensor(entity))])
    assert is_entity.any()
    assert (vectors[~is_entity] == model.static.no_fact).all()


@forms
@torch.no_grad()
def test_where_nothing_is_retrieved_the_gate_is_closed_whatever_it_would_like(corpus: Corpus, form: str) -> None:
    model, batch = ccm(corpus, tiny_config(form)), batch_of(corpus)
    inputs, rows = without_mentions(batch.inputs), torch.arange(len(batch.turn))
    found = []
    for wish in (-50.0, 50.0):
        model.writer.gate.bias.fill_(wish)
        step, state = model.begin_reply(model.perceive(inputs, batch.layout), rows)
        log_probs, _ = step(torch.full((len(rows),), BOS), state)
        assert_normalised(log_probs)
        found.append(log_probs)
    torch.testing.assert_close(found[0], found[1])


@torch.no_grad()
def test_the_gate_shares_all_mass_between_the_vocabulary_and_the_tails(corpus: Corpus) -> None:
    model, batch = ccm(corpus), batch_of(corpus)
    perception = model.perceive(batch.inputs, batch.layout)
    rows = perception.conditions.slot_mask.any(dim=1).nonzero().squeeze(1)
    step, state = model.begin_reply(perception, rows)
    is_tail = torch.zeros(len(rows), len(corpus.vocabulary), dtype=torch.bool)
    for place, row in enumerate(rows.tolist()):
        is_tail[place, perception.conditions.slot_words[row][perception.conditions.slot_mask[row]]] = True
    hidden = replace(state, sources=replace(state.sources, slot_mask=torch.zeros_like(state.sources.slot_mask)))
    begin = torch.full((len(rows),), BOS)
    vocabulary = step(begin, hidden)[0].exp()
    model.writer.gate.weight.zero_()
    for share in (0.0, 0.25, 1.0):
        model.writer.gate.bias.fill_(torch.tensor(share).logit(1e-9))
        mass = step(begin, state)[0].exp()
        pointed = mass - (1.0 - share) * vocabulary
        torch.testing.assert_close(pointed.sum(dim=1), torch.full((len(rows),), share), atol=1e-4, rtol=0)
        assert (pointed[~is_tail].abs() < 1e-5).all()


def spoken(corpus: Corpus, batch: SessionBatch, words: tuple[str, ...]) -> SessionBatch:
    """Every response is these words."""
    ids = [corpus.vocabulary.words.index(word) for word in words]
    response = torch.tensor([*ids, EOS]).expand(len(batch.turn), -1)
    return with_targets(batch, response=response, response_lengths=torch.full_like(batch.turn, len(ids) + 1))


@torch.no_grad()
def test_the_gate_learns_which_words_are_tails_where_there_are_triples(corpus: Corpus) -> None:
    model, batch = ccm(corpus), batch_of(corpus)
    model.writer.gate.weight.zero_()
    model.writer.gate.bias.fill_(1.5)
    said = ("发烧", "咳嗽", "发烧")
    batch = spoken(corpus, batch, said)
    sources = model.read(batch.inputs)
    terms = model.writer.terms(sources, batch.targets.response, batch.targets.response_lengths)
    opened, closed = F.logsigmoid(torch.tensor([1.5, -1.5])).tolist()
    counts = set[int]()
    for row, found in enumerate(terms.gate.tolist()):
        tails = slots_of(corpus, sources, row)
        right = sum(word in tails for word in said)
        expected = right * opened + (4 - right) * closed if tails else 0.0
        assert found == pytest.approx(expected, abs=1e-4)
        counts.add(right)
    assert counts == {0, 1, 2}


def test_the_gates_weight_scales_its_term_of_the_loss(corpus: Corpus) -> None:
    batch = spoken(corpus, batch_of(corpus), ("发烧",))
    none, one, two = (
        ccm(corpus, tiny_config(facts__gate_weight=weight)).loss(batch, moment()) for weight in (0.0, 1.0, 2.0)
    )
    torch.testing.assert_close(none.total, -none.terms["reconstruction"])
    torch.testing.assert_close(one.total - none.total, -one.terms["gate"])
    torch.testing.assert_close(two.total - one.total, one.total - none.total)
    assert one.terms["gate"] < 0


def test_a_full_table_keeps_the_triples_whose_tails_are_preferred() -> None:
    triples = [(0, 0, 1), (0, 1, 2), (0, 0, 3), (0, 1, 3), (2, 0, 0)]
    graph = Graph.from_triples(triples, 5, ("near", "far"))
    table = TripleTable(graph, 5, 2, torch.tensor([0.0, 1.0, 5.0, 9.0, 0.0]))
    found = table.around(torch.tensor([0, 2, 4, -1]))
    assert [
        [(r, t) for r, t, there in zip(*row, strict=True) if there]
        for row in zip(found.relations.tolist(), found.tails.tolist(), found.mask.tolist(), strict=True)
    ] == [[(0, 3), (1, 3)], [(0, 0)], [], []]


def test_a_table_of_no_graph_has_no_triples() -> None:
    graph = Graph.from_triples([], 0, ())
    assert not TripleTable(graph, 0, 4, torch.zeros(0)).around(torch.tensor([[-1], [-1]])).mask.any()


def mentioning(*rows: list[int]) -> TurnInputs:
    width = max(len(row) for row in rows)
    mentions = torch.tensor([row + [-1] * (width - len(row)) for row in rows], dtype=torch.long).view(len(rows), width)
    words = torch.full((len(rows), 1), 5)
    return TurnInputs(words, torch.ones(len(rows), dtype=torch.long), mentions, mentions, mentions >= 0, words)


def test_the_latest_entities_are_distinct_and_the_latest_come_first() -> None:
    inputs = mentioning([3, 1, 3, 2], [4], [], [0, 1, 2, 3])
    assert latest_entities(inputs, 6, 3).tolist() == [[2, 3, 1], [4, -1, -1], [-1, -1, -1], [3, 2, 1]]
    assert latest_entities(mentioning([], []), 6, 3).tolist() == [[-1], [-1]]
    assert latest_entities(mentioning([-1], [-1]), 0, 3).tolist() == [[-1], [-1]]


def test_with_a_layout_the_entities_of_earlier_turns_of_the_session_count_too() -> None:
    inputs = mentioning([3, 1], [5], [2], [], [3])
    layout = TurnLayout(torch.tensor([0, 1, 0, 1, 0]), torch.tensor([0, 0, 1, 1, 2]), (0, 2, 4, 5))
    found = latest_entities(inputs, 6, 4, layout)
    assert found.tolist() == [[1, 3, -1], [5, -1, -1], [2, 1, 3], [5, -1, -1], [3, 2, 1]]


def test_the_graph_reaches_the_reply(corpus: Corpus) -> None:
    """A tail's vector changes what rows that retrieve it say, and no others."""
    model, batch = ccm(corpus), batch_of(corpus)

    def log_probs() -> Tensor:
        perception = model.perceive(batch.inputs, batch.layout)
        return model.reply_log_prob(perception, batch.targets.response, batch.targets.response_lengths)

    before = log_probs()
    with torch.no_grad():
        model.triples.entities.weight[entity_id(corpus, "乏力")] += 1.0
    after = log_probs()
    changed = ~torch.isclose(before, after, atol=1e-5)
    flu = entity_id(corpus, "流感")
    assert torch.equal(changed, (batch.inputs.mention_entities == flu).any(dim=1))
    assert (changed & rows_of(batch, "cold")).any()
