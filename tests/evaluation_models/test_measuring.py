"""From models to scored turns: every turn, the same every time, nothing seen that may not be seen."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.model.tiny import MODELS, sessions, tiny_config, tiny_model, tiny_vrbot
from vrbot.config import DecodingSettings
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.session import CATEGORIES
from vrbot.evaluation.likelihood import action_log_probs
from vrbot.evaluation.measuring import Answer, Measured, ReplyTrials, measure_model, placed_batches, score_answers
from vrbot.evaluation.recorded import corpus_vectors, read_texts, recorded_turns
from vrbot.evaluation.scorecard import Resources, scorecard
from vrbot.evaluation.turns import Latents, ScoredTurn
from vrbot.evaluation.validation import (
    DIALOGUES_TO_CHOOSE_BY,
    TURNS_TO_CHOOSE_BY,
    WORD_REWARDS,
    build_validation,
    choose_decoding,
    climb,
    dialogues_to_choose_by,
    merit_of,
    spread_sample,
)

ANSWERED = [
    (f"test-{session.id}", number)
    for session in sessions()
    for number, turn in enumerate(session.turns)
    if turn.physician
]
HUNDRED = ("bleu_2", "rouge_2", "micro_precision", "micro_recall", "micro_f1", "embedding_average", "embedding_greedy")


def measured(name: str, corpus: Corpus, beam: int = 1) -> Measured:
    config = tiny_config()
    decoding = config.decoding.model_copy(update={"beam": beam})
    return measure_model(tiny_model(name, config, corpus), corpus, "test", config, decoding)


@pytest.mark.parametrize("name", MODELS)
def test_every_turn_with_a_recorded_reply_is_scored_in_corpus_order(name: str, corpus: Corpus) -> None:
    turns = measured(name, corpus).turns
    assert [(turn.session_id, turn.turn) for turn in turns] == ANSWERED
    assert [turn.reference for turn in turns] == [
        turn.physician for s in sessions() for turn in s.turns if turn.physician
    ]


@pytest.mark.parametrize("beam", [1, 3])
def test_measuring_twice_gives_the_same_turns(beam: int, corpus: Corpus) -> None:
    assert measured("vrbot", corpus, beam).turns == measured("vrbot", corpus, beam).turns


def test_the_labels_of_a_turn_are_its_gold_and_the_turn_before_gives_the_state_already_known(corpus: Corpus) -> None:
    names = corpus.inventory.names
    second = measured("vrbot", corpus).turns[1]
    assert [names[entity] for entity in second.gold.state or ()] == ["咳嗽", "发烧", "头痛"]
    assert [names[entity] for entity in second.previous_gold_state or ()] == ["咳嗽"]
    assert second.evidence is not None
    assert {names[entity] for entity in second.evidence.context} == {"咳嗽", "发烧", "头痛"}
    assert {names[entity] for entity in second.reference_entities} == {"流感", "胸片"}


def test_prior_and_inference_networks_both_answer_and_the_likelihood_is_that_of_the_whole_reference(
    corpus: Corpus,
) -> None:
    for turn in measured("vrbot", corpus).turns:
        assert None not in (turn.prior.state, turn.prior.category, turn.prior.keywords)
        assert None not in (turn.inference.state, turn.inference.category, turn.inference.keywords)
        assert turn.log_prob is not None
        assert turn.log_prob < 0
        assert turn.num_log_prob_tokens == len(turn.reference_words) + 1


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("seq2seq", {"state_f1", "action_f1", "category_accuracy", "action_nats"}),
        ("vrbot-no-state", {"state_f1"}),
        ("vrbot-no-action", {"action_f1", "category_accuracy", "action_nats"}),
        ("vrbot", set()),
    ],
)
def test_a_part_that_a_model_does_not_have_does_not_apply(name: str, absent: set[str], corpus: Corpus) -> None:
    card = scorecard(measured(name, corpus).turns).as_dict()
    keys = ("state_f1", "action_f1", "category_accuracy", "action_nats")
    assert {key for key in keys if card[key] is None} == absent


@pytest.mark.parametrize("name", ["vrbot", "vrbot-no-state"])
def test_the_actions_of_a_category_share_what_the_policy_gives_it_when_it_decides(name: str, corpus: Corpus) -> None:
    config = tiny_config("span", policy__length=1)
    model, num_entities = tiny_vrbot(config, corpus, name=name).eval(), len(corpus.inventory.names)
    for placed in placed_batches(corpus.split("test"), config):
        batch, targets = placed.batch, placed.batch.targets
        everybody = torch.ones_like(targets.keywords_known)
        decided = model.perceive(batch.inputs, batch.layout).category
        assert decided is not None
        for category in range(len(CATEGORIES)):
            total = torch.zeros(len(everybody))
            for entity in range(-1, num_entities):  # -1: none is named
                told = dataclasses.replace(
                    targets,
                    category=torch.full_like(targets.category, category),
                    category_known=everybody,
                    keywords=torch.full_like(targets.keywords[:, :1], entity),
                    keywords_known=everybody,
                )
                found = action_log_probs(model, dataclasses.replace(batch, targets=told))
                total += torch.tensor(found).exp()
            torch.testing.assert_close(total, decided[:, category].exp(), atol=1e-5, rtol=0)


def test_an_action_without_a_label_of_either_part_has_no_probability(corpus: Corpus) -> None:
    config = tiny_config()
    model = tiny_vrbot(config, corpus).eval()
    for placed in placed_batches(corpus.split("test"), config):
        batch, targets = placed.batch, placed.batch.targets
        nobody = torch.zeros_like(targets.category_known)
        assert None not in action_log_probs(model, batch)
        for hidden in ({"category_known": nobody}, {"keywords_known": nobody}):
            changed = dataclasses.replace(batch, targets=dataclasses.replace(targets, **hidden))
            assert set(action_log_probs(model, changed)) == {None}


def test_the_replies_of_the_prior_networks_do_not_change_with_reference_or_labels(corpus: Corpus) -> None:
    config = tiny_config()
    model = tiny_vrbot(config, corpus)
    for placed in placed_batches(corpus.split("test"), config):
        targets = placed.batch.targets
        changed = dataclasses.replace(placed.batch, targets=dataclasses.replace(targets, state=targets.state * 0))
        one = model.perceive(placed.batch.inputs, placed.batch.layout)
        other = model.perceive(changed.inputs, changed.layout)
        assert one.keywords is not None
        assert other.keywords is not None
        assert torch.equal(one.keywords, other.keywords)


def test_the_perfect_system_scores_a_hundred_and_the_empty_one_nothing(corpus: Corpus) -> None:
    recorded = recorded_turns(corpus, "test")
    resources = Resources(corpus_vectors(corpus), corpus.inventory.names)
    perfect = {turn.place: Answer(turn.reference, turn.gold, turn.gold) for turn in recorded}
    card = scorecard(score_answers(recorded, perfect, corpus.encoder), None, resources).as_dict()
    assert {key: card[key] for key in HUNDRED} == pytest.approx(dict.fromkeys(HUNDRED, 100.0))
    assert (card["state_f1"], card["action_f1"], card["category_accuracy"]) == (100.0, 100.0, 100.0)
    empty = {turn.place: Answer("", Latents((), None, ())) for turn in recorded}
    card = scorecard(score_answers(recorded, empty, corpus.encoder), None, resources).as_dict()
    assert {key: card[key] for key in HUNDRED} == dict.fromkeys(HUNDRED, 0.0)
    assert (card["state_f1"], card["action_f1"]) == (0.0, 0.0)


def test_words_the_vocabulary_lacks_are_not_taken_for_one_another(corpus: Corpus) -> None:
    one, other = read_texts(corpus.encoder, ["咳嗽鱻", "咳嗽龘"])
    assert one.words == ("咳嗽", "鱻")
    assert other.words == ("咳嗽", "龘")
    assert one.entities == other.entities != frozenset()


def test_only_the_chosen_dialogues_are_measured(corpus: Corpus) -> None:
    config = tiny_config()
    model = tiny_model("vrbot", config, corpus)
    some = measure_model(model, corpus, "test", config, DecodingSettings(beam=1, max_length=12), [3, 0]).turns
    assert {turn.session_id for turn in some} == {"test-cold", "test-long"}
    full = {(turn.session_id, turn.turn): turn for turn in measured("vrbot", corpus).turns}
    assert [turn.reply for turn in some] == [full[turn.session_id, turn.turn].reply for turn in some]


@pytest.mark.parametrize("name", ["vrbot", "seq2seq", "vrbot-no-action"])
def test_validation_gives_the_measure_a_trainer_maximises_and_keeps_the_parameters(name: str, corpus: Corpus) -> None:
    config = tiny_config()
    model = tiny_model(name, config, corpus)
    assert isinstance(model, torch.nn.Module)
    before = [parameter.clone() for parameter in model.parameters()]
    validate = build_validation(corpus, config)
    scores = validate(model)
    assert scores["micro_f1"] is not None
    assert scores == validate(model)
    assert (scores["action_f1"] is None) == (name != "vrbot")
    assert all(torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True))


def test_a_sample_of_dialogues_is_spread_and_never_larger_than_asked() -> None:
    assert spread_sample(9, 3) == [0, 4, 8]
    assert spread_sample(2, 5) == [0, 1]
    assert spread_sample(0, 5) == []


@given(st.integers(1, 2000), st.integers(1, 40))
def test_a_search_is_chosen_by_some_dialogues_or_by_fewer_where_they_are_long(dialogues: int, turns_each: int) -> None:
    chosen = dialogues_to_choose_by(dialogues, dialogues * turns_each)
    assert 1 <= len(chosen) <= DIALOGUES_TO_CHOOSE_BY
    assert len(chosen) * turns_each <= TURNS_TO_CHOOSE_BY
    assert len(chosen) == min(dialogues, DIALOGUES_TO_CHOOSE_BY, TURNS_TO_CHOOSE_BY // turns_each)


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=9, unique=True), st.data())
def test_climbing_ends_where_no_neighbour_is_better_and_finds_a_single_peak(
    heights: list[float], data: st.DataObject
) -> None:
    row = [float(place) for place in range(len(heights))]
    start = data.draw(st.sampled_from(row))
    top = int(climb(row, start, lambda value: heights[int(value)]))
    assert all(heights[top] >= heights[near] for near in (top - 1, top + 1) if 0 <= near < len(row))
    peak = sorted(heights)
    rising = peak[::2] + peak[1::2][::-1]  # up to the highest and down again
    assert rising[int(climb(row, start, lambda value: rising[int(value)]))] == peak[-1]


@pytest.mark.parametrize("best", [0.0, 1.0])
def test_what_a_word_is_worth_is_what_serves_the_validation_replies_best_unless_it_is_set(
    best: float, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above 2 lies a lower top, which a climb from one place might not leave."""
    config = tiny_config()
    model = tiny_model("seq2seq", config, corpus)
    asked: list[float | None] = []

    def write(_: ReplyTrials, decoding: DecodingSettings) -> list[ScoredTurn]:
        assert decoding.beam == config.decoding.beam
        asked.append(decoding.word_reward)
        recorded = recorded_turns(corpus, "valid")
        assert decoding.word_reward is not None
        off = min(abs(decoding.word_reward - best), 0.9 + abs(decoding.word_reward - 2.25))
        wrong = round(8 * off)  # the further off, the more of what is written
        answers = {turn.place: Answer(turn.reference + "，乏力" * wrong) for turn in recorded}
        return score_answers(recorded, answers, corpus.encoder)

    monkeypatch.setattr(ReplyTrials, "write", write)
    assert isinstance(model, torch.nn.Module)
    assert choose_decoding(model, corpus, config) == {"word_reward": best}
    assert set(asked) <= set(WORD_REWARDS)
    assert len(asked) == len(set(asked))  # nothing is written twice
    assert choose_decoding(model, corpus, config.with_settings({"decoding.word_reward": 1.0})) == {}


@pytest.mark.parametrize("name", MODELS)
def test_replies_that_are_only_tried_are_those_that_are_measured(name: str, corpus: Corpus) -> None:
    config = tiny_config()
    model = tiny_model(name, config, corpus)
    trials = ReplyTrials(model, corpus, "test", config, [3, 0])
    for reward in (0.0, 2.0):
        decoding = DecodingSettings(beam=3, max_length=12, word_reward=reward)
        whole = measure_model(model, corpus, "test", config, decoding, [3, 0]).turns
        told = [(turn.session_id, turn.turn, turn.reply, turn.reply_entities) for turn in trials.write(decoding)]
        assert told == [(turn.session_id, turn.turn, turn.reply, turn.reply_entities) for turn in whole]


def test_of_two_models_the_one_with_better_keywords_has_more_merit_and_where_they_are_level_the_fluent_one() -> None:
    assert merit_of(20.0, 60.0) > merit_of(20.0, 80.0)
    assert merit_of(20.5, 60.0) > merit_of(20.0, 60.0)
    assert merit_of(25.0, 80.0) > merit_of(20.0, 60.0)
    assert merit_of(None, None) == 0.0
