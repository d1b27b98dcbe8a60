"""Laws of the systems that read with a pretrained encoder, and of word vectors that begin with one."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.contract.replying import reply_to_batch
from tests.model.tiny import batch_of, moment, tiny_config, tiny_model, without_labels
from tests.nets.tiny_encoder import tiny_encoder, with_tiny_encoder, write_tiny_encoder
from vrbot.agent.pretrained import load_pretrained, save_pretrained
from vrbot.baselines.catalogue import CATALOGUE, build_model
from vrbot.baselines.hred_bert import HredBert, append_entities, keyword_log_prob
from vrbot.config import Config
from vrbot.dialogue.batching import Limits
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.vocabulary import BOS, PAD
from vrbot.errors import ConfigError, IntegrityError, UsageError
from vrbot.evaluation.calibration import OFFSETS, calibrate_threshold
from vrbot.model.build_reading import build_words
from vrbot.model.weights import model_to_bytes
from vrbot.model.world import world_of
from vrbot.nets.initial_vectors import principal_parts
from vrbot.training.checkpoints import RunFolder
from vrbot.training.description import RunPlan
from vrbot.training.loop import Trainer
from vrbot.training.optimiser import Optimiser, rate_factors
from vrbot.training.runs import Parts, train_run, training_data

NAMES = ("vrbot-bert", "hred-bert")
ENCODER = ".reader.encoder."


def settings(directory: Path | None = None, **changes: Any) -> Config:
    config = with_tiny_encoder(tiny_config(training__max_epochs=1, training__average_decay=0.0, **changes))
    return config if directory is None else config.with_settings({"pretrained.directory": str(directory)})


def encoder_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters() if ENCODER in name}


def one_step(model: torch.nn.Module, batch: object) -> None:
    loss = model.train().loss(batch, moment()).total  # type: ignore[operator]
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    torch.optim.SGD(parameters, lr=1e-2).zero_grad()
    loss.backward()
    torch.optim.SGD(parameters, lr=1e-2).step()


@pytest.mark.parametrize("name", NAMES)
def test_a_frozen_encoder_stays_what_it_is_and_one_that_learns_does_not(corpus: Corpus, name: str) -> None:
    for freeze in (True, False):
        model = build_model(name, settings(pretrained__freeze=freeze), corpus)
        before = encoder_weights(model)
        assert before
        one_step(model, batch_of(corpus))
        after = encoder_weights(model)
        moved = {weight for weight in before if not torch.equal(before[weight], after[weight])}
        dense = {weight for weight in before if weight.endswith("output.dense.weight")}
        assert (not moved) if freeze else (dense <= moved)
        assert all(value.grad is None for value in model.parameters() if not value.requires_grad)


def test_an_encoder_that_learns_does_so_at_its_own_rate(corpus: Corpus) -> None:
    model = build_model("vrbot-bert", settings(pretrained__freeze=False, pretrained__learning_rate_factor=0.25), corpus)
    factors = rate_factors(model)
    own_rate = {name for name, factor in factors.items() if factor == 0.25}
    assert own_rate == set(encoder_weights(model))


@pytest.mark.parametrize("name", ["vrbot-bert", "hred-bert"])
def test_what_reads_for_the_policy_alone_learns_at_its_rate_and_the_encoder_at_a_part_of_that(
    name: str, corpus: Corpus
) -> None:
    given = settings(policy__learning_rate_factor=0.2, pretrained__learning_rate_factor=0.25)
    factors = rate_factors(build_model(name, given, corpus))
    history = {each: factor for each, factor in factors.items() if ".history." in each}
    assert {round(factor, 6) for each, factor in history.items() if ".upper." in each} == {0.05}
    assert {round(factor, 6) for each, factor in history.items() if ".upper." not in each} == {0.2}


def test_a_step_moves_a_parameter_by_its_own_share_of_the_learning_rate() -> None:
    fast, slow = (torch.nn.Parameter(torch.zeros(3)) for _ in range(2))
    optimiser = Optimiser({"fast": fast, "slow": slow}, tiny_config().training, {"slow": 0.25})
    fast.grad, slow.grad = torch.ones(3), torch.ones(3)
    optimiser.step(0.1)
    torch.testing.assert_close(fast.detach(), torch.full((3,), -0.1))
    torch.testing.assert_close(slow.detach(), torch.full((3,), -0.025))


def test_what_is_heard_depends_on_what_the_encoder_reads(corpus: Corpus, tmp_path: Path) -> None:
    batch = batch_of(corpus)
    other = settings(write_tiny_encoder(tmp_path / "other", seed=1))
    for name in NAMES:
        here, there = (tiny_model(name, config, corpus) for config in (settings(), other))
        mine, theirs = (
            model.reply_log_prob(
                model.perceive(batch.inputs, batch.layout), batch.targets.response, batch.targets.response_lengths
            )
            for model in (here, there)
        )
        assert name == "hred-bert" or not torch.allclose(mine, theirs)


@pytest.mark.parametrize("name", NAMES)
def test_a_system_that_needs_an_encoder_says_so(corpus: Corpus, name: str) -> None:
    assert CATALOGUE[name].needs_encoder
    with pytest.raises(ConfigError, match=r"--set pretrained\.directory=FOLDER"):
        build_model(name, tiny_config(), corpus)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_and_a_saved_model_give_the_same_replies_and_the_run_asks_for_its_encoder(
    corpus: Corpus, name: str, tmp_path: Path
) -> None:
    encoder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder(), encoder)
    plan = RunPlan(name, corpus.directory, settings(encoder))
    train_run(tmp_path / "run", plan, Parts(build_model, tensorboard=False), threads=1)
    trained = load_pretrained(tmp_path / "run")
    weights = (encoder / "model.safetensors").stat().st_size
    assert not [path for path in (tmp_path / "run").rglob("*") if path.is_file() and encoder_in(path)]
    save_pretrained(tmp_path / "saved", trained)
    assert (tmp_path / "saved" / "encoder" / "model.safetensors").stat().st_size == weights
    write_tiny_encoder(encoder, seed=1)
    with pytest.raises(IntegrityError, match="encoder is not the encoder this model was trained with"):
        load_pretrained(tmp_path / "run")
    shutil.rmtree(encoder)
    with pytest.raises(UsageError, match="encoder is not there: put it back"):
        load_pretrained(tmp_path / "run")
    batch, decoding = batch_of(corpus), settings().decoding
    saved = load_pretrained(tmp_path / "saved")
    replies = [reply_to_batch(each.model, batch, decoding) for each in (trained, saved)]  # type: ignore[arg-type]
    assert replies[0] == replies[1]
    costs = [
        each.model.reply_log_prob(  # type: ignore[operator]
            each.model.perceive(batch.inputs, batch.layout),  # type: ignore[operator]
            batch.targets.response,
            batch.targets.response_lengths,
        )
        for each in (trained, saved)
    ]
    assert torch.equal(costs[0], costs[1])


def test_a_run_that_was_stopped_and_resumed_with_nothing_recalled_is_the_same_run(
    corpus: Corpus, tmp_path: Path
) -> None:
    config = settings(training__batch_size=2).with_settings({"training.max_epochs": 2})
    data = training_data(corpus, RunPlan("vrbot-bert", corpus.directory, config))

    def trainer(folder: str) -> Trainer:
        torch.manual_seed(1)
        (tmp_path / folder).mkdir(exist_ok=True)
        model = build_model("vrbot-bert", config, corpus)
        return Trainer(model, config.training, data, seed=1, folder=RunFolder(tmp_path / folder))

    whole, stopped, resumed = trainer("whole"), trainer("parts"), trainer("parts")
    assert whole.run().status == "finished"
    assert stopped.run(lambda: stopped.progress.step >= 4).status == "interrupted"
    resumed.resume()
    assert resumed.run().status == "finished"
    assert model_to_bytes(resumed.model) == model_to_bytes(whole.model)
    assert model_to_bytes(resumed.model) != model_to_bytes(stopped.model)


def encoder_in(path: Path) -> bool:
    """Whether a file names a weight of the encoder."""
    return b"encoder.layer.0.attention" in path.read_bytes()


def test_entities_stand_behind_the_last_word_of_their_own_row() -> None:
    context = torch.tensor([[7, 8, PAD], [9, 10, 11], [12, PAD, PAD]])
    entities = torch.tensor([[1, -1, 0], [-1, -1, -1], [2, 0, 1]])
    found = append_entities(context, torch.tensor([2, 3, 1]), entities, torch.tensor([20, 21, 22]))
    assert found.lengths.tolist() == [4, 3, 4]
    assert found.context.tolist() == [[7, 8, 21, 20, 0, 0], [9, 10, 11, 0, 0, 0], [12, 22, 20, 21, 0, 0]]


def test_the_likelihood_of_keywords_is_that_of_every_entitys_own_judgement() -> None:
    logits = torch.tensor([[0.5, -1.0, 2.0], [0.0, 3.0, -2.0]])
    found = keyword_log_prob(logits, torch.tensor([[2, 0], [-1, -1]]))
    named = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    expected = torch.distributions.Bernoulli(logits=logits).log_prob(named).sum(dim=1)
    torch.testing.assert_close(found, expected)


def hred_bert(corpus: Corpus) -> HredBert:
    model = tiny_model("hred-bert", settings(), corpus)
    assert isinstance(model, HredBert)
    return model


def test_only_labelled_turns_teach_the_predictor(corpus: Corpus) -> None:
    model, batch = hred_bert(corpus), batch_of(corpus)
    judged = model.predictor.judge.weight
    model.loss(without_labels(batch), moment()).total.backward()
    assert judged.grad is None or not judged.grad.any()
    model.loss(batch, moment()).total.backward()
    assert judged.grad is not None
    assert judged.grad.any()


def test_replies_are_written_with_the_predicted_entities_and_learnt_with_the_labelled_ones(corpus: Corpus) -> None:
    model, batch = hred_bert(corpus), batch_of(corpus)
    targets = batch.targets
    response, lengths = targets.response, targets.response_lengths

    def cost(threshold: float) -> torch.Tensor:
        model.threshold.fill_(threshold)
        return model.reply_log_prob(model.perceive(batch.inputs, batch.layout), response, lengths)

    assert not torch.allclose(cost(-50.0), cost(50.0))
    told = model.hred.perceive(model.appended(batch.inputs, targets.keywords), batch.layout)
    expected = model.hred.reply_log_prob(told, response, lengths)[lengths > 0].sum()
    loss = model.loss(batch, moment())
    torch.testing.assert_close(loss.terms["reconstruction"], expected, atol=1e-3, rtol=1e-4)
    (drawn,) = model.imagine(batch.inputs, batch.layout, 1, moment().generator)
    guessing = model.loss(without_labels(batch), moment())
    expected = model.reply_log_prob(drawn, response, lengths)[lengths > 0].sum()
    torch.testing.assert_close(guessing.terms["reconstruction"], expected, atol=1e-3, rtol=1e-4)


def test_what_hred_is_told_to_name_it_can_copy_whatever_it_has_learnt(corpus: Corpus) -> None:
    """The chance of an entity's word as the first of a reply, where it is told the entity and where another."""
    model, batch = hred_bert(corpus).eval(), batch_of(corpus)
    model.hred.words.weight.data.zero_()  # words are all the same to it: only copying can tell them apart
    rows, chance = torch.arange(len(batch.turn)), []
    for entity in (0, 1):
        told = torch.full((len(rows), 1), entity)
        perceived = model.hred.perceive(model.appended(batch.inputs, told), batch.layout)
        step, state = model.hred.begin_reply(perceived, rows)
        chance.append(step(torch.full_like(rows, BOS), state)[0][:, model.entity_words[0]])
    mentioned = (batch.inputs.context == model.entity_words[0]).any(dim=1)  # then it can be copied either way
    assert not mentioned.all()
    assert (chance[0] > chance[1])[~mentioned].all()


def test_the_threshold_is_the_one_that_serves_best_on_the_split(corpus: Corpus) -> None:
    model, split = hred_bert(corpus), corpus.split("valid")
    best = calibrate_threshold(model, split, Limits())
    assert float(model.threshold) == pytest.approx(min(OFFSETS, key=lambda each: abs(each - float(model.threshold))))
    batch = batch_of(corpus)
    gold = [{e for e in row if e >= 0} for row in batch.targets.response_mentions.tolist()]
    frequent = Counter(e for row in gold for e in row)
    usual = min(frequent, key=lambda e: (-frequent[e], e))
    scores = []
    for threshold in OFFSETS:
        model.threshold.fill_(threshold)
        chosen = model.perceive(batch.inputs, batch.layout).keywords
        assert chosen is not None
        named = [{e for e in row if e >= 0} for row in chosen.tolist()]
        scores.append((micro_f1(named, gold, set()), micro_f1(named, gold, {usual})))
    assert best == pytest.approx(max(scores, key=sum)[0])


def micro_f1(named: list[set[int]], gold: list[set[int]], left_out: set[int]) -> float:
    hits = sum(len((mine & theirs) - left_out) for mine, theirs in zip(named, gold, strict=True))
    return 200 * hits / max(sum(len(row - left_out) for row in named + gold), 1)


def test_word_vectors_may_begin_with_those_of_an_encoder(corpus: Corpus) -> None:
    world = world_of(corpus)
    torch.manual_seed(0)
    plain = build_words(tiny_config(), world)
    torch.manual_seed(0)
    begun = build_words(tiny_config(network__embeddings_from=str(tiny_encoder())), world)
    assert torch.equal(begun.weight[PAD], plain.weight[PAD])
    changed = (begun.weight != plain.weight).any(dim=1)
    assert changed[5:].all()
    assert float(begun.weight.detach()[5:, :8].std()) == pytest.approx(float(plain.weight.detach().std()), rel=0.2)


def test_principal_parts_keep_distances_when_there_is_room_and_the_most_spread_when_not() -> None:
    vectors = torch.randn(30, 5, generator=torch.Generator().manual_seed(1)) * torch.tensor([5.0, 1.0, 3.0, 0.1, 2.0])
    torch.testing.assert_close(principal_parts(vectors, 5), principal_parts(vectors, 9))
    torch.testing.assert_close(torch.pdist(principal_parts(vectors, 5)), torch.pdist(vectors), atol=1e-4, rtol=1e-4)
    spread = principal_parts(vectors, 2).var(dim=0)
    assert spread.tolist() == sorted(spread.tolist(), reverse=True)
    torch.testing.assert_close(spread, torch.linalg.eigvalsh(vectors.T.cov()).flip(0)[:2], atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_either_way_of_reading_with_the_encoder_can_be_left_out(corpus: Corpus, name: str) -> None:
    def parameters(**changes: int) -> set[str]:
        config = settings().with_settings({f"pretrained.{field}": value for field, value in changes.items()})
        return set(dict(build_model(name, config, corpus).named_parameters()))

    every, without_words, without_history = parameters(), parameters(layers=0), parameters(history=0)
    assert any(".reader." in one for one in every - without_words)
    assert any(".history." in one for one in every - without_history)
    assert not any(".reader." in one for one in without_words)
    assert not any(".history." in one for one in without_history)
