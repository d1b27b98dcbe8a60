"""Laws of dual flow: flows that only look back, predictions that never see the response, and what labels teach."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from tests.model.tiny import (
    batch_of,
    entity_id,
    moment,
    rows_of,
    tiny_config,
    tiny_model,
    with_targets,
    without_labels,
)
from vrbot.baselines.dual_flow import DualFlow, entity_targets, past_act_log_prob
from vrbot.config import Config
from vrbot.dialogue.batching import Limits, SessionBatch, TurnInputs, TurnLayout
from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.calibration import OFFSETS, calibrate_none
from vrbot.nets.turn_memory import TurnMemory, turns_so_far
from vrbot.objective import habit_teacher
from vrbot.objective.response_form import ResponseForm
from vrbot.objective.response_reader import ResponseReader

FLOWS = ("entities", "acts", "recognised")


def dual_flow(corpus: Corpus, config: Config | None = None) -> DualFlow:
    model = tiny_model("dual-flow", config or tiny_config(), corpus)
    assert isinstance(model, DualFlow)
    return model


def with_other_turns(inputs: TurnInputs, rows: Tensor, num_entities: int) -> TurnInputs:
    """Other words and other entities in these rows."""
    chosen = rows.unsqueeze(1)
    entities = inputs.mention_entities
    there = entities >= 0
    return replace(
        inputs,
        context=torch.where(chosen & (inputs.context > 5), 6, inputs.context),
        mention_entities=torch.where(chosen & there, (entities + 3) % num_entities, entities),
        patient_mentions=torch.where(chosen & there, ~inputs.patient_mentions, inputs.patient_mentions),
    )


@torch.no_grad()
def test_later_turns_change_nothing_in_the_flows_and_earlier_turns_do(corpus: Corpus) -> None:
    model, batch = dual_flow(corpus), batch_of(corpus)
    before = model.hear(batch.inputs, batch.layout)
    own = rows_of(batch, "cold")
    inputs = with_other_turns(batch.inputs, own & (batch.turn == 1), len(corpus.inventory.names))
    after = model.hear(inputs, batch.layout)
    for name in FLOWS:
        found, expected = getattr(after.flows, name), getattr(before.flows, name)
        changed = ~torch.isclose(found, expected, atol=1e-6).all(dim=1)
        assert not changed[~own | (batch.turn < 1)].any()
        assert changed[own & (batch.turn >= 1)].all()
    assert torch.equal(after.latest.ids[~own | (batch.turn < 1)], before.latest.ids[~own | (batch.turn < 1)])


@torch.no_grad()
def test_each_flow_reads_the_other(corpus: Corpus) -> None:
    model, batch = dual_flow(corpus), batch_of(corpus)
    context = model.hear(batch.inputs, batch.layout).context
    before = model.flows(context, batch.inputs, batch.layout)
    others = with_other_turns(batch.inputs, torch.ones_like(batch.turn, dtype=torch.bool), len(corpus.inventory.names))
    after = model.flows(context, others, batch.layout)  # the same words, other entities
    named = (batch.inputs.mention_entities >= 0).any(dim=1)
    assert torch.equal(after.recognised, before.recognised)
    assert (~torch.isclose(after.acts, before.acts, atol=1e-6).all(dim=1))[named].all()
    model.flows.acts.weight.mul_(-2.0)
    changed = ~torch.isclose(model.flows(context, batch.inputs, batch.layout).entities, before.entities).all(dim=1)
    assert torch.equal(changed, batch.turn > 0)  # nobody has acted before the first turn


def test_a_row_remembers_the_turns_of_its_own_session_up_to_its_own() -> None:
    layout = TurnLayout(torch.tensor([0, 1, 0, 1, 0]), torch.tensor([0, 0, 1, 1, 2]), (0, 2, 4, 5))
    vectors = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]])
    memory = turns_so_far(vectors, layout)
    assert memory.values.squeeze(2).tolist() == [[1, 0, 0], [2, 0, 0], [1, 3, 0], [2, 4, 0], [1, 3, 5]]
    assert torch.equal(memory.mask, memory.values.squeeze(2) > 0)


@torch.no_grad()
def test_a_memory_of_turns_is_a_gru_along_each_session() -> None:
    torch.manual_seed(0)
    memory, turns = TurnMemory(3, 4), torch.randn(5, 3)
    layout = TurnLayout(torch.tensor([0, 1, 0, 1, 0]), torch.tensor([0, 0, 1, 1, 2]), (0, 2, 4, 5))
    found = memory(turns, layout)
    for session in ([0, 2, 4], [1, 3]):
        state = torch.zeros(1, 4)
        for row in session:
            state = memory.cell(turns[row : row + 1], state)
            torch.testing.assert_close(found[row : row + 1], state)


def response_changed(batch: SessionBatch) -> SessionBatch:
    """The same entities are to be predicted, and the words are others."""
    return with_targets(batch, response=torch.where(batch.targets.response > 5, 6, batch.targets.response))


def test_in_training_too_no_prediction_sees_the_response(corpus: Corpus) -> None:
    model = dual_flow(corpus, tiny_config(objective__categories_by_form=False))  # else what is to be predicted changes
    batch = without_labels(batch_of(corpus))
    before, after = (model.loss(either, moment()).terms for either in (batch, response_changed(batch)))
    for name in ("entities", "acts", "past_acts"):
        assert torch.equal(before[name], after[name])
    for name in ("reconstruction_told", "reconstruction_guessed"):
        assert not torch.isclose(before[name], after[name])


def test_the_entities_to_predict_are_the_labelled_ones_or_else_those_the_response_names(corpus: Corpus) -> None:
    batch = without_labels(batch_of(corpus), batch_of(corpus).turn == 0, ("keywords",))
    label = torch.full((len(batch.turn), 1), entity_id(corpus, "腹泻"))
    targets = replace(batch.targets, keywords=torch.where(batch.targets.keywords_known.unsqueeze(1), label, -1))
    found = [[entity for entity in row if entity >= 0] for row in entity_targets(targets).tolist()]
    said = [[entity for entity in row if entity >= 0] for row in targets.response_mentions.tolist()]
    for row, known in enumerate(targets.keywords_known.tolist()):
        assert found[row] == ([entity_id(corpus, "腹泻")] if known else said[row])
    assert any(said[row] for row in (~targets.keywords_known).nonzero().squeeze(1).tolist())


def test_acts_are_learned_from_labels_and_elsewhere_from_the_form_of_responses_where_that_is_wanted(
    corpus: Corpus,
) -> None:
    batch = batch_of(corpus)
    unlabelled = without_labels(batch, kinds=("category",))
    labels_only = dual_flow(corpus, tiny_config(objective__categories_by_form=False))
    none = labels_only.loss(unlabelled, moment()).terms
    assert float(none["acts"]) == float(none["past_acts"]) == 0.0
    labelled = labels_only.loss(batch, moment()).terms
    assert float(labelled["acts"]) < 0.0
    assert float(labelled["past_acts"]) < 0.0
    taught, form = dual_flow(corpus), ResponseForm.of(corpus.vocabulary.words, corpus.inventory.types)
    answered = batch.targets.response_lengths > 0
    told = torch.where(answered, form.categories(batch.targets), -1)
    assert taught._acts(unlabelled.targets).tolist() == told.tolist()
    known = batch.targets.category_known
    assert torch.equal(taught._acts(batch.targets), torch.where(known, batch.targets.category, told))
    scores = taught.prior_policy.classify(
        taught.policy_evidence(heard := taught.hear(batch.inputs, batch.layout), heard.latest)
    )
    expected = scores.gather(1, told.clamp_min(0).unsqueeze(1)).squeeze(1)[answered].sum()
    torch.testing.assert_close(taught.loss(unlabelled, moment()).terms["acts"], expected)


def test_labelled_responses_teach_how_the_acts_of_others_are_read(corpus: Corpus) -> None:
    batch = batch_of(corpus)
    model = dual_flow(corpus)
    model.study(model, lambda: [without_labels(batch, kinds=("category",))])
    assert isinstance(model.teller, ResponseForm)
    model.study(model, lambda: [batch])
    assert isinstance(model.teller, ResponseReader)


def test_a_past_act_is_the_label_of_the_turn_before(corpus: Corpus) -> None:
    batch = batch_of(corpus)
    hidden = rows_of(batch, "cold") & (batch.turn == 1)
    batch = without_labels(batch, hidden, ("category",))
    recognised = torch.randn(len(batch.turn), 4, generator=torch.Generator().manual_seed(0)).log_softmax(dim=1)
    acts = torch.where(batch.targets.category_known, batch.targets.category, -1)
    found = past_act_log_prob(recognised, acts, batch.layout)
    place = {
        (session, turn): row
        for row, (session, turn) in enumerate(zip(batch.session.tolist(), batch.turn.tolist(), strict=True))
    }
    for (session, turn), row in place.items():
        before = place.get((session, turn - 1))
        label = -1 if before is None else int(batch.targets.category[before])
        assert float(found[row]) == (float(recognised[row, label]) if label >= 0 else 0.0)
    assert int((found == 0).sum()) == batch.turn_offsets[1] + 1


def test_the_generator_learns_from_what_is_true_and_from_a_drawn_guess_in_every_turn(corpus: Corpus) -> None:
    model, batch = dual_flow(corpus), batch_of(corpus)
    targets = batch.targets
    terms = model.loss(batch, moment()).terms
    (drawn,) = model.imagine(batch.inputs, batch.layout, 1, moment().generator)
    guessed = model.reply_log_prob(drawn, targets.response, targets.response_lengths).sum()
    torch.testing.assert_close(terms["reconstruction_guessed"], guessed, atol=1e-3, rtol=1e-5)
    assert float(terms["reconstruction_told"]) != pytest.approx(float(guessed), abs=1e-3)


def test_guesses_in_training_do_not_wait_for_a_calibration(corpus: Corpus) -> None:
    """Before the first validation the offset is 0, and by it almost nothing would be named."""
    model, batch = dual_flow(corpus), batch_of(corpus)
    losses = []
    for offset in (0.0, -4.8):
        model.none_offset.fill_(offset)
        losses.append(float(model.loss(batch, moment()).total.detach()))
    assert losses[0] == losses[1]


def test_the_weights_scale_their_terms_of_the_loss(corpus: Corpus) -> None:
    batch = batch_of(corpus)
    plain = dual_flow(corpus, tiny_config(flows__entity_weight=1.0, flows__act_weight=1.0)).loss(batch, moment())
    answered = dual_flow(corpus, tiny_config(flows__entity_weight=3.0, flows__act_weight=0.0)).loss(batch, moment())
    terms = plain.terms
    torch.testing.assert_close(plain.total, -sum(terms.values(), torch.zeros(())))
    replies = terms["reconstruction_told"] + terms["reconstruction_guessed"]
    torch.testing.assert_close(answered.total, -replies - 3.0 * terms["entities"])


def test_a_lower_offset_names_more_and_calibration_finds_the_best_for_the_validation_split(corpus: Corpus) -> None:
    model, batch = dual_flow(corpus), batch_of(corpus)
    named = []
    for offset in OFFSETS:
        model.none_offset.fill_(offset)
        keywords = model.perceive(batch.inputs, batch.layout).keywords
        assert keywords is not None
        named.append(int((keywords >= 0).sum()))
    assert named == sorted(named)
    assert named[0] < named[-1]
    best = calibrate_none(cast(Any, model), corpus.split("valid"), Limits())
    assert float(model.none_offset) == pytest.approx(min(OFFSETS, key=lambda offset: abs(offset - model.none_offset)))
    found = [calibrate_at(model, offset, batch) for offset in OFFSETS]
    assert best == pytest.approx(max(found), abs=1e-3)


def calibrate_at(model: DualFlow, offset: float, batch: SessionBatch) -> float:
    """Keyword micro-F1 (0-100) against what the responses name, at this offset."""
    model.none_offset.fill_(offset)
    keywords = model.perceive(batch.inputs, batch.layout).keywords
    assert keywords is not None
    hits = gold = named = 0
    for row, said in zip(keywords.tolist(), batch.targets.response_mentions.tolist(), strict=True):
        predicted, expected = {e for e in row if e >= 0}, {e for e in said if e >= 0}
        hits, named, gold = hits + len(predicted & expected), named + len(predicted), gold + len(expected)
    return 200 * hits / max(named + gold, 1)


def test_habits_are_given_to_it_on_demand_only(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(habit_teacher, "FEWEST_EXAMPLES", 0)
    batch = batch_of(corpus)
    assert dual_flow(corpus).habits is None
    model = dual_flow(corpus, tiny_config(flows__habits=True))
    model.study(model, lambda: [batch])
    assert model.habits is not None
    foretold = model.hear(batch.inputs, batch.layout).foretold
    assert foretold is not None
    assert foretold.any()
    before = model.perceive(batch.inputs, batch.layout).keywords
    model.habits.bias -= 100.0
    after = model.perceive(batch.inputs, batch.layout).keywords
    assert before is not None
    assert after is not None
    assert (before >= 0).any()
    assert not (after >= 0).any()
