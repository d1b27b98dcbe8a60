"""The three lower bounds on log p(R_t | R_{t-1}, U_t, G); every tensor is [N], in nats (paper, Eqs. 5, 17 and 18).

In each bound the prior and the posterior of the action are conditioned on the same state: the one the bound's own
expectation draws. (The paper's text draws S^p for p(A) and S^q for q(A) inside the joint bound; that is not a lower
bound, see docs/decisions.)
"""

from __future__ import annotations

from torch import Tensor


def joint_bound(reconstruction: Tensor, kl_state: Tensor, kl_action: Tensor) -> Tensor:
    """-L_joint (Eq. 5): state from q(S), action from q(A | S)."""
    return reconstruction - kl_state - kl_action


def state_bound(reconstruction: Tensor, kl_state: Tensor) -> Tensor:
    """-L_s (Eq. 17): state from q(S), action from the prior policy p(A | S)."""
    return reconstruction - kl_state


def action_bound(reconstruction: Tensor, kl_action: Tensor) -> Tensor:
    """-L_a (Eq. 18): state from the prior tracker p(S), action from q(A | S)."""
    return reconstruction - kl_action
