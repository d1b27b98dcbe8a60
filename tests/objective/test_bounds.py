"""The bounds on the log evidence, with everything written out as tables: three states, four actions, one response.

docs/decisions/0005 cites the last test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from vrbot.objective.bounds import action_bound, joint_bound, state_bound
from vrbot.probability.category import divergence

STATES, ACTIONS = 3, 4


@dataclass(frozen=True, eq=False)
class Tables:
    """Log p(S) [S], log p(A | S) [S, A], and log p(R | S, A) [S, A] of the one response that was seen."""

    state: Tensor
    action: Tensor
    response: Tensor

    @property
    def joint(self) -> Tensor:
        """Log p(S, A, R) [S, A]."""
        return self.state.unsqueeze(1) + self.action + self.response

    @property
    def evidence(self) -> Tensor:
        """Log p(R): all there is, summed."""
        return self.joint.flatten().logsumexp(dim=0)


@dataclass(frozen=True, eq=False)
class Guess:
    """Log q(S) [S] and log q(A | S) [S, A]."""

    state: Tensor
    action: Tensor


def random_logs(*shape: int, seed: int, spread: float = 2.0) -> Tensor:
    logits = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * spread
    return logits.log_softmax(dim=-1)


def random_tables(seed: int) -> Tables:
    response = -torch.rand(STATES, ACTIONS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 8
    return Tables(random_logs(STATES, seed=seed + 1), random_logs(STATES, ACTIONS, seed=seed + 2), response)


def expected(log_weights: Tensor, values: Tensor) -> Tensor:
    """The mean of values over the last dimension; what has no weight does not count."""
    weights = log_weights.exp()
    return (weights * torch.where(weights > 0, values, 0.0)).sum(dim=-1)


def joint(p: Tables, q: Guess) -> Tensor:
    """State from q(S), action from q(A | S)."""
    reconstruction = expected(q.state, expected(q.action, p.response))
    return joint_bound(reconstruction, divergence(q.state, p.state), expected(q.state, divergence(q.action, p.action)))


def of_state(p: Tables, q: Guess) -> Tensor:
    """State from q(S), action from p(A | S)."""
    return state_bound(expected(q.state, expected(p.action, p.response)), divergence(q.state, p.state))


def of_action(p: Tables, q: Guess) -> Tensor:
    """State from p(S), action from q(A | S)."""
    return action_bound(
        expected(p.state, expected(q.action, p.response)), expected(p.state, divergence(q.action, p.action))
    )


def in_the_papers_words(p: Tables, q: Guess) -> Tensor:
    """As the paper's text draws L_joint: q(A) given S^q from q(S), but p(A) given S^p from p(S)."""
    reconstruction = expected(q.state, expected(q.action, p.response))
    across = divergence(q.action.unsqueeze(1), p.action.unsqueeze(0))  # [S^q, S^p]
    return joint_bound(reconstruction, divergence(q.state, p.state), expected(q.state, expected(p.state, across)))


def true_posterior(p: Tables) -> Guess:
    return Guess(p.joint.logsumexp(dim=1) - p.evidence, p.joint.log_softmax(dim=1))


@pytest.mark.parametrize("bound", [joint, of_state, of_action])
def test_no_bound_exceeds_the_log_evidence_whatever_the_guess(bound) -> None:
    for seed in range(60):
        p = random_tables(10 * seed)
        for spread in (0.1, 2.0, 10.0):
            q = Guess(
                random_logs(STATES, seed=seed, spread=spread),
                random_logs(STATES, ACTIONS, seed=seed + 5, spread=spread),
            )
            assert float(bound(p, q)) <= float(p.evidence) + 1e-9
        assert float(bound(p, true_posterior(p))) <= float(p.evidence) + 1e-9


def test_the_joint_bound_is_the_log_evidence_at_the_true_posterior_and_nowhere_else() -> None:
    for seed in range(20):
        p = random_tables(10 * seed)
        torch.testing.assert_close(joint(p, true_posterior(p)), p.evidence)
        q = Guess(random_logs(STATES, seed=seed), random_logs(STATES, ACTIONS, seed=seed + 5))
        assert float(joint(p, q)) < float(p.evidence) - 1e-6


def test_a_collapsed_bound_is_reached_where_the_other_latent_explains_nothing() -> None:
    """L_s is tight if the response ignores the action, L_a if it ignores the state."""
    for seed in range(20):
        p = random_tables(10 * seed)
        of_states = Tables(p.state, p.action, p.response[:, :1].expand(-1, ACTIONS))
        torch.testing.assert_close(of_state(of_states, true_posterior(of_states)), of_states.evidence)
        same = Tables(p.state, p.action[:1].expand(STATES, -1), p.response[:1].expand(STATES, -1))
        torch.testing.assert_close(of_action(same, true_posterior(same)), same.evidence)


def test_the_papers_sampling_of_two_states_for_one_divergence_is_not_a_bound() -> None:
    """The physician mostly does what the state suggests; the response that was seen shows that this time he did not."""
    p = Tables(
        state=torch.tensor([0.5, 0.5], dtype=torch.float64).log(),
        action=torch.tensor([[0.9, 0.1], [0.1, 0.9]], dtype=torch.float64).log(),
        response=torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64).log(),
    )
    q = true_posterior(p)  # S as likely as before, A the other one for certain
    assert float(p.evidence) == pytest.approx(math.log(0.1))
    assert float(joint(p, q)) == pytest.approx(math.log(0.1))
    assert float(in_the_papers_words(p, q)) == pytest.approx(0.5 * math.log(0.1) + 0.5 * math.log(0.9))
    assert float(in_the_papers_words(p, q)) > float(p.evidence) + 1.0
