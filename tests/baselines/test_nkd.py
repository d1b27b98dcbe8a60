"""Laws of NKD: where its facts come from, how far they spread, what labels teach, and what its tracker forbids."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.model.tiny import (
    assert_normalised,
    batch_of,
    entity_id,
    moment,
    rows_of,
    tiny_config,
    tiny_model,
    without_labels,
)
from vrbot.baselines.nkd import NKD, Diffused, Matched, relevance_log_prob
from vrbot.config import Config
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.vocabulary import BOS, EOS

forms = pytest.mark.parametrize("form", ["small", "paper"])


def nkd(corpus: Corpus, config: Config | None = None) -> NKD:
    model = tiny_model("nkd", config or tiny_config(), corpus)
    assert isinstance(model, NKD)
    return model


def neighbours(corpus: Corpus, entity: int) -> set[int]:
    graph = corpus.graph
    return set(graph.targets[graph.offsets[entity] : graph.offsets[entity + 1]].tolist())


def tails_of(facts: Matched, row: int) -> list[int]:
    tails: list[int] = facts.tails[row][facts.mask[row]].tolist()
    return tails


def reached(spread: Diffused, row: int) -> set[int]:
    return set(spread.entities[row][spread.mask[row]].tolist())


@torch.no_grad()
def test_the_facts_are_the_triples_of_all_entities_the_session_has_named(corpus: Corpus) -> None:
    model, batch = nkd(corpus), batch_of(corpus)
    _, facts = model.match(batch.inputs, batch.layout)
    named: dict[int, set[int]] = {}
    for row, session in enumerate(batch.session.tolist()):
        entities = {entity for entity in batch.inputs.mention_entities[row].tolist() if entity >= 0}
        named[session] = named.get(session, set()) | entities
        expected = sorted(tail for entity in named[session] for tail in neighbours(corpus, entity))
        assert sorted(tails_of(facts, row)) == expected
    assert facts.mask.any()
    assert not facts.mask.any(dim=1).all()


@pytest.mark.parametrize("spreading", [1, 2, 8])
@torch.no_grad()
def test_diffusion_reaches_the_neighbours_of_the_best_matched_tails_and_no_further(
    corpus: Corpus, spreading: int
) -> None:
    model, batch = nkd(corpus, tiny_config(facts__spreading=spreading)), batch_of(corpus)
    dialogue, facts = model.match(batch.inputs, batch.layout)
    spread = model.diffusion(dialogue.summary, facts)
    found = set[int]()
    for row in range(len(batch.turn)):
        logits = facts.logits[row][facts.mask[row]].tolist()
        ranked = [tail for _, tail in sorted(zip(logits, tails_of(facts, row), strict=True), reverse=True)]
        expected = {entity for tail in ranked[:spreading] for entity in neighbours(corpus, tail)}
        assert reached(spread, row) == expected
        found |= expected
    assert found


@torch.no_grad()
def test_a_fact_that_is_not_there_does_not_spread(corpus: Corpus) -> None:
    model, batch = nkd(corpus), batch_of(corpus)
    dialogue, facts = model.match(batch.inputs, batch.layout)
    tails = torch.full_like(facts.tails, entity_id(corpus, "流感"))
    for there in (True, False):
        mask = torch.full_like(facts.mask, there)
        spread = model.diffusion(dialogue.summary, Matched(facts.vectors, tails, mask, facts.logits))
        assert bool(spread.mask.any()) is there


@torch.no_grad()
def test_no_more_neighbours_are_reached_than_the_setting_allows(corpus: Corpus) -> None:
    batch = batch_of(corpus)
    few, many = (nkd(corpus, tiny_config(facts__neighbours=count)) for count in (1, 8))
    sizes = []
    for model in (few, many):
        dialogue, facts = model.match(batch.inputs, batch.layout)
        spread = model.diffusion(dialogue.summary, facts)
        sizes.append(spread.mask.sum(dim=1))
    assert (sizes[0] <= 5).all()
    assert (sizes[0] < sizes[1]).any()


def test_relevance_is_learned_on_labelled_turns_only(corpus: Corpus) -> None:
    model, batch = nkd(corpus), batch_of(corpus)
    unlabelled = without_labels(batch, kinds=("keywords",))
    assert float(model.loss(unlabelled, moment()).terms["relevance"]) == 0.0
    assert float(model.loss(batch, moment()).terms["relevance"]) < 0.0
    some = batch.turn == 1
    _, facts = model.match(batch.inputs, batch.layout)
    targets = without_labels(batch, some, ("keywords",)).targets
    relevance = relevance_log_prob(facts, targets.keywords, targets.keywords_known)
    (gradient,) = torch.autograd.grad(relevance.sum(), facts.logits)
    assert (gradient[some] == 0).all()
    assert torch.equal((gradient != 0).any(dim=1), ~some & facts.mask.any(dim=1))


@torch.no_grad()
def test_a_fact_is_relevant_if_its_tail_is_a_keyword(corpus: Corpus) -> None:
    model, batch = nkd(corpus), batch_of(corpus)
    _, facts = model.match(batch.inputs, batch.layout)
    keywords = torch.tensor([[entity_id(corpus, "胸片"), -1]]).expand(len(batch.turn), -1)
    found = relevance_log_prob(facts, keywords, torch.ones_like(batch.turn, dtype=torch.bool))
    for row, logits in enumerate(facts.logits):
        labels = [float(tail == entity_id(corpus, "胸片")) for tail in tails_of(facts, row)]
        expected = -F.binary_cross_entropy_with_logits(logits[facts.mask[row]], torch.tensor(labels), reduction="sum")
        torch.testing.assert_close(found[row], expected if labels else torch.zeros(()))


def test_without_labels_the_weight_of_relevance_changes_nothing(corpus: Corpus) -> None:
    batch = batch_of(corpus)
    for labelled in (True, False):
        light, heavy = (
            nkd(corpus, tiny_config(facts__relevance_weight=weight)).loss(
                batch if labelled else without_labels(batch), moment()
            )
            for weight in (0.0, 3.0)
        )
        torch.testing.assert_close(heavy.total, light.total - 3.0 * light.terms["relevance"])
        assert torch.equal(heavy.total, light.total) is not labelled


@forms
@torch.no_grad()
def test_no_entity_is_pointed_at_twice_in_a_reply(corpus: Corpus, form: str) -> None:
    """Entities cannot come from the vocabulary here, so that only the pointer can write them."""
    model, batch = nkd(corpus, tiny_config(form)), batch_of(corpus)
    model.writer.head.bias[model.entity_words] = -1e4
    perception = model.perceive(batch.inputs, batch.layout)
    rows = perception.conditions.slot_mask.any(dim=1).nonzero().squeeze(1)
    model.writer.gate.bias.fill_(50.0)
    step, state = model.begin_reply(perception, rows)
    tokens = torch.full((len(rows),), BOS)
    written: list[torch.Tensor] = []
    for _ in range(perception.conditions.slot_mask.shape[1] + 1):
        log_probs, state = step(tokens, state)
        assert_normalised(log_probs)
        for before in written:
            assert (log_probs.gather(1, before.unsqueeze(1))[torch.isin(before, model.entity_words)] < -1e3).all()
        tokens = log_probs.argmax(dim=1)
        written.append(tokens)
    said = torch.stack(written, dim=1)
    for place, row in enumerate(rows.tolist()):
        offered = set(perception.conditions.slot_words[row][perception.conditions.slot_mask[row]].tolist())
        entities = [word for word in said[place].tolist() if word in offered]
        assert sorted(entities) == sorted(offered)  # with the gate wide open each is named, and once


@forms
@torch.no_grad()
def test_a_reply_that_names_an_entity_twice_costs_what_its_steps_cost(corpus: Corpus, form: str) -> None:
    model, batch = nkd(corpus, tiny_config(form)), batch_of(corpus)
    perception = model.perceive(batch.inputs, batch.layout)
    rows = perception.conditions.slot_mask.any(dim=1).nonzero().squeeze(1)
    sources = perception.conditions.select(rows)
    entity = sources.slot_words.gather(1, sources.slot_mask.long().argmax(dim=1, keepdim=True))
    response = torch.cat((entity, entity, torch.full_like(entity, EOS)), dim=1)
    step, state = model.begin_reply(perception, rows)
    tokens, total = torch.full((len(rows),), BOS), torch.zeros(len(rows))
    for word in response.unbind(dim=1):
        log_probs, state = step(tokens, state)
        tokens, total = word, total + log_probs.gather(1, word.unsqueeze(1)).squeeze(1)
    found = model.writer.terms(sources, response, torch.full((len(rows),), 3))
    torch.testing.assert_close(found.log_prob, total, atol=1e-3, rtol=1e-4)


@torch.no_grad()
def test_what_one_hypothesis_has_named_another_can_still_name(corpus: Corpus) -> None:
    model, batch = nkd(corpus), batch_of(corpus)
    model.writer.head.bias[model.entity_words] = -1e4
    perception = model.perceive(batch.inputs, batch.layout)
    row = int(perception.conditions.slot_mask.any(dim=1).nonzero()[0])
    step, state = model.begin_reply(perception, torch.tensor([row]))
    _, state = step(torch.tensor([BOS]), state)
    entity = int(perception.conditions.slot_words[row][perception.conditions.slot_mask[row]][0])
    log_probs, _ = step(torch.tensor([entity, BOS]), state.select(torch.tensor([0, 0]), None))
    assert log_probs[0, entity] < -1e3 < -50 < log_probs[1, entity]


@forms
@torch.no_grad()
def test_a_session_that_has_named_nothing_is_answered_by_words_alone(corpus: Corpus, form: str) -> None:
    model, batch = nkd(corpus, tiny_config(form)), batch_of(corpus, [1])
    first = rows_of(batch, "quiet") & (batch.turn == 0)
    found = []
    for wish in (-50.0, 50.0):
        model.writer.gate.bias.fill_(wish)
        perception = model.perceive(batch.inputs, batch.layout)
        assert not perception.conditions.slot_mask[first].any()
        step, state = model.begin_reply(perception, first.nonzero().squeeze(1))
        found.append(step(torch.tensor([BOS]), state)[0])
    assert_normalised(found[0])
    torch.testing.assert_close(found[0], found[1])


@torch.no_grad()
def test_a_relevant_fact_is_pointed_at_more_than_an_irrelevant_one(corpus: Corpus) -> None:
    model, batch = nkd(corpus), batch_of(corpus)
    dialogue, facts = model.match(batch.inputs, batch.layout)
    row = int(facts.mask.any(dim=1).nonzero()[0])
    masses = []
    for logit in (-4.0, 4.0):
        logits = facts.logits.clone()
        logits[row, 0] = logit
        sources = model.sources(batch.inputs, dialogue, Matched(facts.vectors, facts.tails, facts.mask, logits))
        outputs = torch.zeros(len(batch.turn), 1, model.encoder.utterances.hidden_size)
        masses.append(model.writer.pointer(outputs, sources.pointed, sources.slot_mask.unsqueeze(1))[row, 0, 0])
    assert masses[1] > masses[0]
