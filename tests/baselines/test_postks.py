"""PostKS: one fact of the subgraph, chosen without the response in use; a gate mixes what is said and known."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.model.tiny import (
    TRIPLES,
    assert_normalised,
    batch_of,
    entity_id,
    moment,
    rows_of,
    tiny_config,
    tiny_model,
    with_targets,
    without_labels,
)
from vrbot.baselines.knowledge_pieces import NO_PIECE, PieceFinder, Pieces, facts_of, mentioned_so_far
from vrbot.baselines.postks import PostKS
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.knowledge.graph import Graph
from vrbot.knowledge.retrieval import retrieve_subgraph
from vrbot.nets.fused_decoder import FusedCell, Informed


def tiny_postks(corpus: Corpus, **changes: Any) -> PostKS:
    model = tiny_model("postks", tiny_config(**changes), corpus)
    assert isinstance(model, PostKS)
    return model


def distributions(model: PostKS, batch: SessionBatch) -> tuple[Tensor, Tensor, Pieces]:
    """Prior and posterior over the pieces of every turn."""
    consulted = model.consult(batch.inputs, batch.layout)
    return model.prior(consulted.context.summary, consulted), model.infer(consulted, batch.targets), consulted.pieces


def two_way_graph(num_nodes: int, seed: int, share: float = 0.3) -> Graph:
    """Random facts, each stated from both ends, by the relations 0 to 2 and their opposites 3 to 5."""
    random = np.random.default_rng(seed)
    pairs = [(a, b) for a in range(num_nodes) for b in range(a) if random.random() < share]
    facts = [(a, int(random.integers(3)), b) for a, b in pairs]
    return Graph.from_triples([*facts, *((b, r + 3, a) for a, r, b in facts)], num_nodes, [f"r{i}" for i in range(6)])


@pytest.mark.parametrize("seed", range(4))
def test_facts_are_stated_once_and_every_entity_has_one_before_any_has_two(seed: int) -> None:
    graph = two_way_graph(14, seed)
    subgraph = retrieve_subgraph(graph, [0, 3, 5], 2, 10)
    everything = facts_of(subgraph, 6, limit=1000)
    edges = {
        (a, int(r), int(b))
        for a in range(14)
        for r, b in zip(
            graph.relation_ids[graph.offsets[a] : graph.offsets[a + 1]],
            graph.targets[graph.offsets[a] : graph.offsets[a + 1]],
            strict=True,
        )
    }
    stated = [tuple(fact) for fact in everything.tolist()]
    assert set(stated) <= edges
    assert max(Counter(frozenset((a, b)) for a, _, b in stated).values()) == 1
    within = set(subgraph.nodes.tolist())
    place = {node: i for i, node in enumerate(subgraph.nodes.tolist())}
    hop = dict(zip(subgraph.nodes.tolist(), subgraph.hops.tolist(), strict=True))
    walked = {frozenset((a, b)) for a, _, b in edges if {a, b} <= within and min(hop[a], hop[b]) < 2}
    assert {frozenset((a, b)) for a, _, b in stated} == walked
    assert all(place[head] < place[tail] for head, _, tail in stated)
    rounds = [Counter(tail for _, _, tail in stated[:i])[stated[i][2]] for i in range(len(stated))]
    assert rounds == sorted(rounds)
    assert facts_of(subgraph, 6, limit=4).tolist() == everything[:4].tolist()


def test_a_fact_that_a_graph_states_only_towards_the_seed_is_a_fact_too() -> None:
    graph = Graph.from_triples([(0, 0, 1), (1, 0, 2), (2, 1, 0)], 3, ["r", "s"])
    assert sorted(facts_of(retrieve_subgraph(graph, [0], 2), 2, 50).tolist()) == [[0, 0, 1], [1, 0, 2], [2, 1, 0]]


def test_pieces_come_from_what_was_mentioned_so_far_the_latest_first_to_stay(corpus: Corpus) -> None:
    batch = batch_of(corpus)
    for limit in (1, 2, 10):
        seeds = mentioned_so_far(batch.inputs.mention_entities, batch.layout, limit)
        for row, found in enumerate(seeds):
            earlier = (batch.session == batch.session[row]) & (batch.turn <= batch.turn[row])
            said = [e for e in batch.inputs.mention_entities[earlier].flatten().tolist() if e >= 0]
            latest = list(dict.fromkeys(reversed(said)))[:limit]
            assert list(found) == latest[::-1]


def test_a_piece_is_a_triple_of_the_graph_and_a_row_has_no_more_than_the_limit(corpus: Corpus) -> None:
    seeds = (entity_id(corpus, "流感"),)
    known = {(entity_id(corpus, head), entity_id(corpus, tail)) for head, _, tail in TRIPLES}
    for limit in (1, 2, 50):
        pieces = PieceFinder(corpus.graph, 2, 40, limit).find([seeds, ()])
        assert pieces.mask.sum(dim=1).tolist() == [min(limit, 3), 1]
        assert {tuple(pair) for pair in pieces.entities[0, 1:].tolist() if pair[0] >= 0} <= known
        assert pieces.entities[:, NO_PIECE].tolist() == [[-1, -1], [-1, -1]]


def test_none_is_there_without_facts_and_never_beside_them(corpus: Corpus) -> None:
    pieces = PieceFinder(corpus.graph, 2, 40, 50).find([(entity_id(corpus, "流感"),), ()])
    assert pieces.mask[:, NO_PIECE].tolist() == [False, True]
    assert pieces.mask[0].any()
    empty_labels = torch.full((2, 1), -1)
    assert pieces.holding(empty_labels).any(dim=1).tolist() == [False, True]


@torch.no_grad()
def test_both_selections_sum_to_one_over_the_pieces_that_exist(corpus: Corpus) -> None:
    model, batch = tiny_postks(corpus), batch_of(corpus)
    prior, posterior, pieces = distributions(model, batch)
    assert pieces.mask.sum(dim=1).unique().numel() > 1
    for log_probs in (prior, posterior):
        assert_normalised(log_probs)
        assert torch.equal(log_probs > -math.inf, pieces.mask)


@torch.no_grad()
def test_the_prior_never_hears_the_response_and_the_posterior_does(corpus: Corpus) -> None:
    model, batch = tiny_postks(corpus), batch_of(corpus)
    heard: dict[str, list[Tensor]] = {"prior": [], "posterior": []}
    for name, calls in heard.items():
        getattr(model, name).register_forward_hook(lambda module, given, result, calls=calls: calls.append(result))
    model.loss(batch, moment())
    random = torch.Generator().manual_seed(4)
    response = torch.randint(5, 30, batch.targets.response.shape, generator=random)
    model.loss(without_labels(with_targets(batch, response=response)), moment())
    assert torch.equal(heard["prior"][0], heard["prior"][1])
    several = heard["prior"][0].isfinite().sum(dim=1) > 1
    moved = ((heard["posterior"][0].exp() - heard["posterior"][1].exp()).abs() > 1e-6).any(dim=1)
    assert moved.tolist() == several.tolist()
    model.perceive(batch.inputs, batch.layout)
    assert (len(heard["prior"]), len(heard["posterior"])) == (3, 2)


def test_a_dialogue_that_mentions_nothing_chooses_no_piece_and_still_learns(corpus: Corpus) -> None:
    model, batch = tiny_postks(corpus), batch_of(corpus)
    silent = dataclasses.replace(
        batch,
        inputs=dataclasses.replace(
            batch.inputs,
            **{
                name: getattr(batch.inputs, name)[:, :0]
                for name in ("mention_entities", "mention_positions", "patient_mentions")
            },
        ),
    )
    prior, posterior, pieces = distributions(model, silent)
    assert pieces.mask.shape == (len(batch.turn), 1)
    assert prior.exp().tolist() == posterior.exp().tolist() == [[1.0]] * len(batch.turn)
    perception = model.perceive(silent.inputs, silent.layout)
    assert perception.keywords is not None
    assert bool((perception.keywords == -1).all())
    loss = model.loss(silent, moment())
    loss.total.backward()
    assert bool(loss.total.isfinite())
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in model.parameters())
    assert model.piece_encoder.none.grad is not None


@torch.no_grad()
def test_the_keywords_are_the_entities_of_the_priors_most_probable_piece(corpus: Corpus) -> None:
    model, batch = tiny_postks(corpus), batch_of(corpus)
    prior, _, pieces = distributions(model, batch)
    perception = model.perceive(batch.inputs, batch.layout)
    assert perception.keywords is not None
    for row, chosen in enumerate(prior.argmax(dim=1).tolist()):
        expected = [] if chosen == NO_PIECE else pieces.entities[row, chosen].tolist()
        assert [entity for entity in perception.keywords[row].tolist() if entity >= 0] == expected
    vectors = model.piece_encoder(pieces)
    rows = torch.arange(len(batch.turn))
    assert torch.equal(perception.conditions.knowledge, vectors[rows, prior.argmax(dim=1)])


@torch.no_grad()
def test_a_fact_is_read_the_same_in_every_row_and_alone(corpus: Corpus) -> None:
    model, batch = tiny_postks(corpus), batch_of(corpus)
    pieces = model.consult(batch.inputs, batch.layout).pieces
    vectors = model.piece_encoder(pieces)
    assert not vectors[~pieces.mask].any()
    for row, place in (pieces.heads >= 0).nonzero().tolist():
        head, relation, tail = (int(part[row, place]) for part in (pieces.heads, pieces.relations, pieces.tails))
        words = model.piece_encoder.entity_words
        symbols = torch.stack(
            (
                model.words.weight[words[head]],
                model.piece_encoder.relations.weight[relation],
                model.words.weight[words[tail]],
            )
        )
        expected = model.piece_encoder.encoder(symbols.unsqueeze(0), torch.tensor([3])).summary[0]
        torch.testing.assert_close(vectors[row, place], expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_gate_lies_between_0_and_1_and_mixes_two_true_gru_steps() -> None:
    torch.manual_seed(0)
    cell, hidden, word, piece = FusedCell(5, 4, 6), torch.randn(7, 6), torch.randn(7, 5), torch.randn(7, 4)
    fused = cell(hidden, cell.gates_of_word(word), cell.gates_of_knowledge(piece))
    assert bool(((fused.gate > 0) & (fused.gate < 1)).all())
    mixture = fused.gate * fused.spoken + (1 - fused.gate) * fused.known
    torch.testing.assert_close(fused.hidden, mixture)
    parts = ((cell.gates_of_word, word, fused.spoken, 0), (cell.gates_of_knowledge, piece, fused.known, 18))
    for projection, given, found, start in parts:
        gru = nn.GRUCell(projection.in_features, 6)
        gru.weight_ih.copy_(projection.weight)
        gru.bias_ih.copy_(projection.bias)
        gru.weight_hh.copy_(cell.gates_of_hidden.weight[start : start + 18])
        gru.bias_hh.copy_(cell.gates_of_hidden.bias[start : start + 18])
        torch.testing.assert_close(found, gru(given, hidden), atol=1e-5, rtol=1e-5)


def test_the_right_pieces_are_those_that_name_a_labelled_entity_and_none_for_an_empty_label() -> None:
    entities = torch.tensor([[[-1, -1], [3, 4], [4, 5]], [[-1, -1], [3, 4], [-1, -1]], [[-1, -1], [1, 2], [2, 3]]])
    pieces = Pieces(entities[..., 0], torch.zeros(3, 3), entities[..., 1], torch.ones(3, 3, dtype=torch.bool))
    found = pieces.holding(torch.tensor([[4, -1], [9, 8], [-1, -1]]))
    assert found.tolist() == [[False, True, True], [False, False, False], [True, False, False]]
    assert pieces.holding(torch.zeros(3, 0, dtype=torch.long)).tolist() == [[True, False, False]] * 3


@torch.no_grad()
def test_labels_cost_what_both_networks_think_of_the_right_pieces(linked_corpus: Corpus) -> None:
    model, batch = tiny_postks(linked_corpus), batch_of(linked_corpus)
    some = without_labels(batch, rows_of(batch, "cold"))
    prior, posterior, pieces = distributions(model, some)
    expected = 0.0
    for row in range(len(some.turn)):
        if not some.targets.keywords_known[row] or some.targets.response_lengths[row] == 0:
            continue
        wanted = set(some.targets.keywords[row].tolist()) - {-1}
        right = [i for i, pair in enumerate(pieces.entities[row].tolist()) if wanted & set(pair)]
        right = right if wanted else [NO_PIECE] * bool(pieces.mask[row, NO_PIECE])
        if right:
            expected += sum(math.log(float(each[row, right].exp().sum())) for each in (prior, posterior))
    assert float(model.loss(some, moment()).terms["labels"]) == pytest.approx(expected, rel=1e-4)
    assert expected < -0.1
    assert float(model.loss(without_labels(batch), moment()).terms["labels"]) == 0.0


@torch.no_grad()
def test_the_loss_is_likelihood_divergence_bag_of_words_and_labels_once_it_is_warm(corpus: Corpus) -> None:
    model, batch = tiny_postks(corpus, postks__warmup_steps=3), batch_of(corpus)
    for step in (0, 2):
        loss = model.loss(batch, moment(step=step))
        assert "reconstruction" not in loss.terms
        expected = loss.terms["bag_of_words"] - loss.terms["labels"]
        torch.testing.assert_close(loss.total, expected, atol=1e-3, rtol=1e-5)
    loss = model.loss(batch, moment(step=3))
    terms = loss.terms
    expected = terms["bag_of_words"] - terms["labels"] + terms["kl"] - terms["reconstruction"]
    torch.testing.assert_close(loss.total, expected, atol=1e-3, rtol=1e-5)
    prior, posterior, _ = distributions(model, batch)
    divergences = torch.nn.functional.kl_div(prior.exp().clamp_min(1e-30).log(), posterior.exp(), reduction="none")
    kept = divergences[batch.targets.response_lengths > 0]
    torch.testing.assert_close(terms["kl"], kept.sum(), atol=1e-3, rtol=1e-4)


def test_while_warming_up_the_decoder_does_not_learn(corpus: Corpus) -> None:
    for step, learns in ((0, False), (1, True)):
        model = tiny_postks(corpus, postks__warmup_steps=1)
        model.loss(batch_of(corpus), moment(step=step)).total.backward()
        assert (model.decoder.cell.gate.weight.grad is not None) is learns
        assert model.bag_of_words.layer.weight.grad is not None


def test_a_detached_posterior_costs_the_same_but_is_not_pulled_towards_the_prior(corpus: Corpus) -> None:
    batch = without_labels(batch_of(corpus))
    gradients, totals = [], []
    for detach in (True, False):
        model = tiny_postks(corpus, postks__detach_posterior=detach)
        loss = model.loss(batch, moment())
        loss.total.backward()
        totals.append(float(loss.total.detach()))
        gradients.append([[p.grad.clone() for p in part.parameters()] for part in (model.prior, model.posterior)])  # type: ignore[union-attr]
    assert totals[0] == totals[1]
    (prior, posterior), (same_prior, other_posterior) = gradients
    assert all(torch.allclose(a, b) for a, b in zip(prior, same_prior, strict=True))
    assert not all(torch.allclose(a, b) for a, b in zip(posterior, other_posterior, strict=True))


@torch.no_grad()
def test_in_training_exactly_one_piece_is_drawn_and_all_chance_comes_from_the_moment(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, batch = tiny_postks(corpus), batch_of(corpus)
    drawn: list[Tensor] = []
    own = model.decoder.log_prob

    def watched(given: Informed, response: Tensor, lengths: Tensor) -> Tensor:
        drawn.append(given.knowledge)
        return own(given, response, lengths)

    monkeypatch.setattr(model.decoder, "log_prob", watched)
    totals = []
    for own_seed, seed in ((1, 0), (2, 0), (2, 3)):
        torch.manual_seed(own_seed)
        totals.append(float(model.loss(batch, moment(seed)).total))
    assert totals[0] == totals[1] != totals[2]
    vectors = model.consult(batch.inputs, batch.layout).vectors
    for knowledge in drawn:
        assert bool((vectors == knowledge.unsqueeze(1)).all(dim=-1).any(dim=-1).all())
