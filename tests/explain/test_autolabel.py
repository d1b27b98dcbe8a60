"""The auto-labeller: what it proposes is what its networks hold, and what is known stays known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.model.tiny import (
    batch_of,
    entity_id,
    tiny_config,
    tiny_model,
    tiny_vrbot,
    with_targets,
    without_labels,
)
from vrbot.dialogue.batching import limits_of
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.splits import Split
from vrbot.dialogue.supervision import LabelMasks, every_label
from vrbot.errors import UsageError
from vrbot.evaluation.measuring import inference_latents
from vrbot.explain.autolabel import AutoLabeller, infer
from vrbot.explain.proposals import KINDS, ProposedSession


def no_label(split: Split) -> LabelMasks:
    nothing = np.zeros(split.num_turns, dtype=np.bool_)
    return LabelMasks(nothing, nothing, nothing)


def labeller(corpus: Corpus, form: str = "small", name: str = "vrbot") -> AutoLabeller:
    config = tiny_config(form)
    return AutoLabeller(tiny_vrbot(config, corpus, name=name), limits_of(config.network))


@pytest.mark.parametrize("form", ["small", "free", "paper"])
def test_without_labels_the_proposals_are_what_the_inference_networks_are_measured_by(
    form: str, corpus: Corpus
) -> None:
    maker, split = labeller(corpus, form), corpus.split("test")
    for rows in maker.label(split, range(split.num_sessions), no_label(split)):
        measured = inference_latents(maker.model, rows.batch)
        for row, found in enumerate(maker.proposals(rows.inferred, corpus.inventory.names)):
            named = [corpus.inventory.names[entity] for entity in measured[row].state or ()]
            assert list(found["state"].value) == named
            assert ("keywords" in found) == bool(rows.inferred.answered[row])
            if "keywords" in found:
                keywords = [corpus.inventory.names[entity] for entity in measured[row].keywords or ()]
                assert list(found["keywords"].value) == keywords


@pytest.mark.parametrize("form", ["small", "free"])
def test_a_confidence_is_the_probability_of_all_that_is_proposed(form: str, corpus: Corpus) -> None:
    maker, split = labeller(corpus, form), corpus.split("test")
    for rows in maker.label(split, range(split.num_sessions), no_label(split)):
        for found in maker.proposals(rows.inferred, corpus.inventory.names):
            for kind, proposal in found.items():
                assert 0 <= proposal.confidence <= 1
                if kind != "category":
                    assert proposal.confidence <= math.prod(proposal.entities) + 1e-6
                    assert len(proposal.entities) == len(proposal.value)


def test_labels_that_are_there_are_not_proposed_again(corpus: Corpus) -> None:
    assert all(not turn for one in labeller(corpus).propose(corpus, "test") for turn in one.turns)


def test_states_go_on_from_the_labels_that_are_there(corpus: Corpus) -> None:
    model, batch = labeller(corpus).model, without_labels(batch_of(corpus, [0]))
    state, known = torch.full((len(batch.turn), 1), -1), torch.zeros(len(batch.turn), dtype=torch.bool)
    state[0], known[0] = entity_id(corpus, "腹泻"), True
    told, untold = infer(model, with_targets(batch, state=state, state_known=known)), infer(model, batch)
    assert told.state.span.ids[0][told.state.span.mask[0]].tolist() == [entity_id(corpus, "腹泻")]
    assert torch.equal(told.state.log_probs[0, 0], untold.state.log_probs[0, 0])
    assert not torch.equal(told.state.log_probs[1], untold.state.log_probs[1])


@pytest.mark.parametrize("form", ["small", "free", "paper"])
def test_turn_by_turn_each_proposal_is_that_of_a_dialogue_labelled_so_far(form: str, corpus: Corpus) -> None:
    maker, split = labeller(corpus, form), corpus.split("test")
    everything = range(split.num_sessions)
    names = corpus.inventory.names
    number = np.concatenate([np.arange(count) for count in split.turns_per_session])
    at_once = {
        turn: found
        for rows in maker.label(split, everything, turn_by_turn=True)
        for turn, found in zip(rows.turns.tolist(), maker.proposals(rows.inferred, names), strict=True)
    }
    assert sorted(at_once) == list(range(split.num_turns))
    for come_so_far in range(int(number.max()) + 1):
        before = number < come_so_far
        for rows in maker.label(split, everything, LabelMasks(before, before, before)):
            for turn, found in zip(rows.turns.tolist(), maker.proposals(rows.inferred, names), strict=True):
                if number[turn] == come_so_far:
                    assert {kind: each.value for kind, each in at_once[turn].items()} == {
                        kind: each.value for kind, each in found.items()
                    }


def test_uncertainty_is_zero_where_everything_is_known_and_counts_no_copies(corpus: Corpus) -> None:
    maker, split = labeller(corpus), corpus.split("test")
    assert maker.uncertainty(split, every_label(split)).tolist() == [0.0] * split.num_turns
    unsure = maker.uncertainty(split, no_label(split))
    assert (unsure > 0).all()
    proposals = []
    for rows in maker.label(split, range(split.num_sessions), no_label(split)):
        proposals += list(zip(rows.turns.tolist(), maker.proposals(rows.inferred, corpus.inventory.names), strict=True))
    for turn, found in proposals:
        sure = [-math.log(found[kind].confidence) for kind in found if kind not in maker.copied]
        assert unsure[turn] == pytest.approx(sum(sure), rel=1e-4)


def test_what_can_only_be_copied_is_said_to_be(corpus: Corpus) -> None:
    assert labeller(corpus, "small").copied == ("keywords",)
    assert labeller(corpus, "free").copied == ()
    assert labeller(corpus, "small", "vrbot-no-state").copied == ("state", "keywords")
    assert labeller(corpus, "small", "vrbot-no-action").kinds == ("state",)
    assert labeller(corpus, "small", "vrbot").kinds == KINDS


def test_a_model_without_inference_networks_is_refused(corpus: Corpus) -> None:
    config = tiny_config()
    with pytest.raises(UsageError, match="no inference networks"):
        AutoLabeller(tiny_model("seq2seq", config, corpus), limits_of(config.network))  # type: ignore[arg-type]


def test_every_session_asked_for_comes_back_whole_and_in_that_order(corpus: Corpus) -> None:
    found = labeller(corpus).propose(corpus, "test", "mine", [3, 0])
    assert [one.session for one in found] == [corpus.session("test", number) for number in (3, 0)]
    assert {(one.split, one.model) for one in found} == {("test", "mine")}
    assert all(isinstance(one, ProposedSession) and len(one.turns) == len(one.session.turns) for one in found)
