"""Several processes are one: the same last bit, the same refusals."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from benchmarks.kill_resume import digest_of
from hypothesis import given
from hypothesis import strategies as st

from tests.training.conftest import Train
from tests.training.fake import SETTINGS, build_fake, fake_config
from vrbot.dialogue.batching import Limits, collate
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import ConfigError
from vrbot.model.contract import Moment
from vrbot.training.distributed import Workers
from vrbot.training.gradients import cut_into_shards, flat_gradient, pairwise_sum, set_gradient
from vrbot.training.steps import ShardReport, StepData, gradients_of_step, mean_terms

ROOT = Path(__file__).parents[2]


def torchrun(processes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    launcher = ["torch.distributed.run", "--master-addr=127.0.0.1", "--master-port=0", f"--nproc-per-node={processes}"]
    rendezvous = ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1"]
    command = [sys.executable, "-m", *launcher, *rendezvous, "-m", "tests.training.command", "train", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)


def settings(**changes: object) -> list[str]:
    values = {**SETTINGS, **{f"training.{name}": value for name, value in changes.items()}}
    return [part for name, value in values.items() for part in ("--set", f"{name}={value}")]


def test_two_processes_train_to_the_bit_what_one_does(train: Train, corpus_path: Path, tmp_path: Path) -> None:
    labels = ["--state-labels", "0.5", "--action-labels", "0.5", "--seed", "3", "--threads", "1"]
    places = ["--model", "fake", "--corpus", str(corpus_path), "--out", str(tmp_path / "two")]
    done = torchrun(2, *places, *labels, *settings(shards=4))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("is finished") == 1
    train(tmp_path / "one", shards=4)
    two, one = digest_of(tmp_path / "two"), digest_of(tmp_path / "one")
    assert two.pop("names") == f"{one.pop('names')} tensorboard"
    assert two == one


def test_shards_that_cannot_be_dealt_out_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"training\.shards = 3 .* 2 processes.*multiple of 2"):
        Workers(rank=0, size=2).own_shards(3)


@given(num_shards=st.integers(1, 8), size=st.integers(1, 8))
def test_every_shard_has_one_owner(num_shards: int, size: int) -> None:
    owned = [shard for rank in range(size) for shard in Workers(rank, size).own_shards(num_shards * size)]
    assert owned == list(range(num_shards * size))


@given(power=st.integers(0, 4), blocks=st.integers(0, 4), seed=st.integers(0, 99))
def test_blocks_of_a_power_of_two_are_added_to_the_same_last_bit(power: int, blocks: int, seed: int) -> None:
    blocks = min(blocks, power)
    parts = list(torch.randn(2**power, 50, generator=torch.Generator().manual_seed(seed)))
    size = len(parts) // 2**blocks
    sums = [pairwise_sum(parts[start : start + size]) for start in range(0, len(parts), size)]
    assert torch.equal(pairwise_sum(parts), pairwise_sum(sums))


@given(num_sessions=st.integers(0, 20), num_shards=st.integers(1, 6))
def test_shards_hold_every_session_once(num_sessions: int, num_shards: int) -> None:
    sessions = torch.arange(num_sessions).numpy()
    shards = cut_into_shards(sessions, num_shards)
    assert len(shards) == num_shards
    assert sorted(each for shard in shards for each in shard.tolist()) == sessions.tolist()


def test_a_parameter_nobody_used_gets_no_gradient() -> None:
    used, unused = torch.zeros(2, 3, requires_grad=True), torch.zeros(4, requires_grad=True)
    used.grad = torch.ones(2, 3)
    flat = flat_gradient([used, unused])
    set_gradient([used, unused], 2 * flat, [True, False])
    assert used.grad is not None
    assert used.grad.eq(2).all()
    assert unused.grad is None


def quiet_gradient(corpus: Corpus, num_shards: int) -> tuple[torch.Tensor, list[ShardReport]]:
    """The gradient of ten sessions without noise and dropout."""
    torch.manual_seed(0)
    model = build_fake("fake", fake_config(), corpus)
    model.dropout.p = 0.0
    model.noise = 0.0
    split = corpus.split("train")
    shards = cut_into_shards(torch.arange(10).numpy(), num_shards)
    parameters = list(model.parameters())
    turns = int(split.turns_per_session[:10].sum())
    moment = Moment(0, 1, torch.Generator().manual_seed(0))
    data = StepData(split, None, Limits())
    reports = gradients_of_step(model, parameters, data, shards, lambda shard: moment, turns, Workers())
    return flat_gradient(parameters), reports


@pytest.mark.parametrize("num_shards", [2, 3, 10, 16])
def test_shards_do_not_change_the_gradient_nor_the_loss(corpus_path: Path, num_shards: int) -> None:
    corpus = Corpus.open(corpus_path)
    (whole, one), (added, many) = quiet_gradient(corpus, 1), quiet_gradient(corpus, num_shards)
    assert len(many) == min(num_shards, 10)
    assert whole.abs().max() > 0.01
    torch.testing.assert_close(added, whole)
    assert mean_terms(many, 30) == pytest.approx(mean_terms(one, 30))


def test_the_gradient_is_that_of_the_mean_over_turns(corpus_path: Path) -> None:
    corpus = Corpus.open(corpus_path)
    gradient, _ = quiet_gradient(corpus, 1)
    torch.manual_seed(0)
    model = build_fake("fake", fake_config(), corpus)
    model.dropout.p = 0.0
    model.noise = 0.0
    batch = collate(corpus.split("train"), range(10), limits=Limits())
    loss = model.loss(batch, Moment(0, 1, torch.Generator()))
    slopes = torch.autograd.grad(loss.total / loss.num_turns, list(model.parameters()), allow_unused=True)
    expected = [torch.zeros_like(p) if s is None else s for p, s in zip(model.parameters(), slopes, strict=True)]
    torch.testing.assert_close(gradient, torch.cat([each.reshape(-1) for each in expected]))
