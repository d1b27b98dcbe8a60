"""Labels count where they are known, each kind for itself, and nowhere else."""

from __future__ import annotations

import itertools

import pytest
import torch

from tests.model.tiny import (
    MODELS,
    batch_of,
    entity_id,
    moment,
    rows_of,
    tiny_config,
    tiny_model,
    with_targets,
    without_labels,
)
from tests.objective.watched import terms_of, watched_vrbot
from vrbot.baselines.catalogue import CATALOGUE
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.model.contract import BatchLoss
from vrbot.model.keyword_scores import IMPOSSIBLE
from vrbot.objective.labels import LABEL_KINDS, in_order_of, known_latents

SUBSETS = [kinds for size in range(4) for kinds in itertools.combinations(LABEL_KINDS, size)]


def labelled_with(batch: SessionBatch, kinds: tuple[str, ...]) -> SessionBatch:
    return without_labels(batch, kinds=[kind for kind in LABEL_KINDS if kind not in kinds])


def loss_of_sessions(loss: BatchLoss, batch: SessionBatch) -> dict[str, float]:
    return dict(zip(batch.session_ids, loss.per_session.tolist(), strict=True))


@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_a_session_without_labels_costs_the_same_beside_sessions_with_labels(
    linked_corpus: Corpus, name: str, stage: int
) -> None:
    model, batch = tiny_model(name, tiny_config(), linked_corpus), batch_of(linked_corpus)
    unlabelled = ("long", "stomach", "unanswered")
    some = without_labels(batch, torch.stack([rows_of(batch, session) for session in unlabelled]).any(dim=0))
    beside = loss_of_sessions(model.loss(some, moment(stage=stage)), batch)
    alone = loss_of_sessions(model.loss(without_labels(batch), moment(stage=stage)), batch)
    if name == "vrbot-un":
        assert [beside[session] for session in unlabelled] == [0.0, 0.0, 0.0]
        assert set(alone.values()) == {0.0}
        assert beside["cold"] > 0
        return
    for session in unlabelled:
        assert beside[session] == pytest.approx(alone[session], rel=1e-5, abs=1e-4)
    if CATALOGUE[name].labels:
        assert beside["cold"] != pytest.approx(alone["cold"], rel=1e-5)


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_labels_a_model_has_no_part_for_change_nothing(corpus: Corpus, name: str) -> None:
    model, batch = tiny_model(name, tiny_config(), corpus), batch_of(corpus)
    usable = labelled_with(batch, CATALOGUE[name].labels)
    for stage in (1, 2):
        assert float(model.loss(batch, moment(stage=stage)).total) == float(
            model.loss(usable, moment(stage=stage)).total
        )


@pytest.mark.parametrize("kinds", SUBSETS, ids=lambda kinds: "+".join(kinds) or "none")
@torch.no_grad()
def test_each_kind_of_label_takes_the_place_of_its_own_divergence(corpus: Corpus, kinds: tuple[str, ...]) -> None:
    model = watched_vrbot(tiny_config(), corpus)
    batch = labelled_with(batch_of(corpus), kinds)
    total = float(model.loss(batch, moment()).total)
    terms = {
        name: float(term[batch.targets.response_lengths > 0].sum())
        for name, term in terms_of(model, batch, moment()).items()
    }
    expected = -terms["reconstruction_state"] - terms["reconstruction_action"] - terms["labels"]
    expected += sum(terms[f"kl_{kind}"] for kind in LABEL_KINDS if kind not in kinds)
    assert total == pytest.approx(expected, rel=1e-5)
    assert (terms["labels"] < 0) is bool(kinds)


@pytest.mark.parametrize("kind", LABEL_KINDS)
@torch.no_grad()
def test_in_the_first_stage_too_every_kind_of_label_teaches(corpus: Corpus, kind: str) -> None:
    model, batch = watched_vrbot(tiny_config(), corpus), batch_of(corpus)
    terms = terms_of(model, labelled_with(batch, (kind,)), moment(stage=1))
    assert bool((terms["labels"][batch.targets.response_lengths > 0] < 0).any())


@torch.no_grad()
def test_what_stands_in_a_label_that_is_not_known_does_not_matter(corpus: Corpus) -> None:
    model = watched_vrbot(tiny_config(), corpus)
    batch = without_labels(batch_of(corpus), batch_of(corpus).turn % 2 == 0)
    unknown = ~batch.targets.state_known
    nonsense = with_targets(
        batch,
        state=torch.where(unknown.unsqueeze(1), 7, batch.targets.state),
        keywords=torch.where(unknown.unsqueeze(1), 2, batch.targets.keywords),
        category=torch.where(unknown, 3, batch.targets.category),
    )
    assert torch.equal(model.loss(nonsense, moment()).per_session, model.loss(batch, moment()).per_session)


@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_turns_without_a_recorded_reply_contribute_nothing(corpus: Corpus, name: str, stage: int) -> None:
    model, batch = tiny_model(name, tiny_config(), corpus), batch_of(corpus)
    silent = with_targets(
        batch,
        response=torch.zeros_like(batch.targets.response),
        response_lengths=torch.zeros_like(batch.targets.response_lengths),
        response_mentions=torch.full_like(batch.targets.response_mentions, -1),
        response_mention_positions=torch.full_like(batch.targets.response_mentions, -1),
    )
    assert model.loss(batch, moment()).num_turns == len(batch.turn) - 1
    for kinds in (LABEL_KINDS, ("state", "keywords"), ()):
        loss = model.loss(labelled_with(silent, kinds), moment(stage=stage))
        assert loss.num_turns == 0
        assert float(loss.total.detach()) == 0.0
        assert not loss.per_session.any()


@torch.no_grad()
def test_the_losses_of_the_sessions_add_up_to_the_loss_of_the_batch(corpus: Corpus) -> None:
    for name in MODELS:
        loss = tiny_model(name, tiny_config(), corpus).loss(batch_of(corpus), moment())
        assert float(loss.per_session.sum()) == pytest.approx(float(loss.total), rel=1e-5)


@torch.no_grad()
def test_label_terms_are_the_log_probabilities_of_the_labels_by_both_networks(corpus: Corpus) -> None:
    """Recomputed from the parts, for first turns, where nothing is carried."""
    model, batch = watched_vrbot(tiny_config("free"), corpus), batch_of(corpus)
    found, first = terms_of(model, batch, moment())["labels"], batch.turn == 0
    heard, response = model.hear(batch.inputs, batch.layout), model.hear_response(batch.targets)
    known = known_latents(batch.targets, model.state_length, model.action_length, model.objective.preference, 4)  # type: ignore[attr-defined]
    read, mentions = model.recall(model.first_state(len(batch.turn), torch.device("cpu")), heard.mentions, heard.table)
    evidence = (heard.context.summary, read.summary)
    expected = torch.zeros(len(batch.turn))
    for tracker, seen in (
        (model.prior_tracker, evidence),
        (model.inference_tracker, (*evidence, response.encoded.summary)),
    ):
        scores = tracker.score_along(seen, known.state, mentions, heard.table)  # type: ignore[operator]
        expected += scores.gather(-1, known.state.ids.unsqueeze(-1)).squeeze(-1).sum(dim=-1)
    for policy, told in ((model.prior_policy, None), (model.inference_policy, response)):
        of_action = policy.score_along(model.policy_evidence(heard, known.state, told), known.action)  # type: ignore[operator]
        expected += of_action.keywords.log_probs.gather(-1, known.keywords.ids.unsqueeze(-1)).squeeze(-1).sum(dim=-1)
        expected += of_action.category.gather(1, known.category.argmax(dim=1, keepdim=True)).squeeze(1)
    assert bool(expected[first].isfinite().all())
    torch.testing.assert_close(found[first], expected[first], atol=1e-3, rtol=1e-4)


@torch.no_grad()
def test_a_keyword_the_response_never_names_costs_a_fixed_price_where_it_cannot_be_copied(corpus: Corpus) -> None:
    model, batch = watched_vrbot(tiny_config(), corpus), labelled_with(batch_of(corpus), ("keywords",))
    absent = with_targets(batch, keywords=torch.full_like(batch.targets.keywords[:, :1], entity_id(corpus, "腹泻")))
    terms = terms_of(model, absent, moment())
    assert bool((terms["labels"] <= IMPOSSIBLE).all())
    assert bool(terms["labels"].isfinite().all())


def test_keywords_of_a_label_stand_in_order_of_preference_and_equals_as_given() -> None:
    entities = torch.tensor([[3, 1, 2, -1], [0, -1, -1, -1], [2, 0, 3, 1]])
    preference = torch.tensor([1.0, 5.0, 2.0, 2.0])
    assert in_order_of(entities, preference).tolist() == [[1, 3, 2, -1], [0, -1, -1, -1], [1, 2, 3, 0]]
    assert in_order_of(entities[:, :0], preference).shape == (3, 0)
