"""The reasoning detectors: each says how much mass an entity should have as the next action keyword.

A detector gives logits for all entities, or scores for slots to copy from; the policy network puts them all under
one normaliser (paper, Eqs. 10, 11 and 14). Letters: N rows, Q positions, E entities, J slots, X nodes, H hidden size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.model.context_encoder import Context, Mentions
from vrbot.model.spans import Written
from vrbot.model.subgraphs import EncodedSubgraphs
from vrbot.nets.copying import rule_out
from vrbot.nets.encoders import Encoded


@dataclass(frozen=True, eq=False)
class PolicyEvidence:
    """What a policy network reasons from; the inference policy also has the response, the prior the graph."""

    context: Context
    state: Encoded
    table: Tensor  # [E+1, D]
    subgraphs: EncodedSubgraphs | None = None
    response: Encoded | None = None
    response_mentions: Mentions | None = None
    standing: Tensor | None = None  # [N, E, 5], see `model.standing`
    foretold: Tensor | None = None  # [N, E], see `model.habits`

    def of_prior(self, rows: Tensor, subgraphs: EncodedSubgraphs | None) -> PolicyEvidence:
        """What the prior policy has in these rows, with these subgraphs."""
        standing = None if self.standing is None else self.standing[rows]
        foretold = None if self.foretold is None else self.foretold[rows]
        read, state = self.context.select(rows), self.state.select(rows)
        return PolicyEvidence(read, state, self.table, subgraphs, standing=standing, foretold=foretold)


@dataclass(frozen=True, eq=False)
class Copies:
    """Scores [N, Q, J] of slots that hold the entities [N, J]."""

    scores: Tensor
    entities: Tensor


@dataclass(frozen=True, eq=False)
class Detection:
    """Logits for all entities [N, Q, E], or copies, or both."""

    generation: Tensor | None = None
    copies: Copies | None = None


TRUST = 0.75
"""How much of what habits foretell counts at first."""


class ContextDetector(nn.Module):
    """Reasons from the conversation and the state: MLP([h^S; h^c; b]) over all entities (Eqs. 10 and 14).

    What `standing_score` makes of how each entity stands in the conversation is added, and with `minds_habits` what is
    usually named after such words, as far as that has proved right.
    """

    def __init__(
        self,
        embedding_size: int,
        hidden_size: int,
        num_entities: int,
        dropout: float,
        standing_score: TraitScore | None = None,
        *,
        minds_habits: bool = False,
    ) -> None:
        super().__init__()
        self.standing_score = standing_score
        self.trust = nn.Parameter(torch.tensor(TRUST)) if minds_habits else None
        self.from_evidence = nn.Linear(2 * hidden_size, hidden_size)
        self.from_decoder = nn.Linear(hidden_size, hidden_size, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(hidden_size, embedding_size)
        self.bias = nn.Parameter(torch.zeros(num_entities))

    def forward(self, states: Tensor, written: Written, evidence: PolicyEvidence) -> Detection:
        fixed = self.from_evidence(torch.cat((evidence.state.summary, evidence.context.summary), dim=-1))
        hidden = torch.tanh(fixed.unsqueeze(1) + self.from_decoder(states))
        generation = self.project(self.dropout(hidden)) @ evidence.table[:-1].T + self.bias
        if self.standing_score is not None and evidence.standing is not None:
            generation = generation + self.standing_score(hidden, evidence.standing)
        if self.trust is not None and evidence.foretold is not None:
            generation = generation + self.trust * evidence.foretold.unsqueeze(1)
        return Detection(generation=rule_out(generation, ~written.used[..., :-1]))


class GraphDetector(nn.Module):
    """Reasons over the graph: every node of the subgraph can be copied (Eq. 11).

    `score` maps (h^c with b [N, Q, 2H], node vectors [N, X, H]) to [N, Q, X]; what `trait_score` makes of the nodes'
    traits is added.
    """

    def __init__(self, score: nn.Module, trait_score: TraitScore | None = None) -> None:
        super().__init__()
        self.score, self.trait_score = score, trait_score

    def forward(self, states: Tensor, written: Written, evidence: PolicyEvidence) -> Detection:
        graphs = evidence.subgraphs
        assert graphs is not None, "a graph detector needs subgraphs"
        summary = evidence.context.summary.unsqueeze(1).expand(-1, states.shape[1], -1)
        query = torch.cat((summary, states), dim=-1)
        scores = self.score(query, graphs.nodes)
        if self.trait_score is not None and graphs.traits is not None:
            scores = scores + self.trait_score(query, graphs.traits)
        index = graphs.entities.unsqueeze(1).expand(-1, states.shape[1], -1)
        allowed = ~written.used.gather(-1, index) & graphs.mask.unsqueeze(1)
        return Detection(copies=Copies(rule_out(scores, allowed), graphs.entities))


class LinearNodeScore(nn.Module):
    """The paper's W_g [h^c; b; g_j]: one weight vector over all three."""

    def __init__(self, query_size: int, node_size: int) -> None:
        super().__init__()
        self.of_query, self.of_node = nn.Linear(query_size, 1), nn.Linear(node_size, 1, bias=False)

    def forward(self, query: Tensor, nodes: Tensor) -> Tensor:
        scores: Tensor = self.of_query(query) + self.of_node(nodes).transpose(1, 2)
        return scores


class BilinearNodeScore(nn.Module):
    """The paper's linear score, and a product of projected query and node, so that the query can prefer nodes."""

    def __init__(self, query_size: int, node_size: int, dropout: float) -> None:
        super().__init__()
        self.linear = LinearNodeScore(query_size, node_size)
        self.project = nn.Linear(query_size, node_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query: Tensor, nodes: Tensor) -> Tensor:
        products = torch.bmm(self.project(self.dropout(query)), nodes.transpose(1, 2)) / nodes.shape[-1] ** 0.5
        scores: Tensor = self.linear(query, nodes) + products
        return scores


class TraitScore(nn.Module):
    """What traits of nodes or entities [N, X, K] are worth, as each query [N, Q, H] has it: [N, Q, X], at first 0.

    Traits mean the same for all entities: every turn says something of their worth, and it is learnt faster than the
    rest of the policy.
    """

    learning_rate_factor = 3.0

    def __init__(self, query_size: int, num_traits: int, dropout: float) -> None:
        super().__init__()
        self.worth = nn.Linear(query_size, num_traits)
        self.dropout = nn.Dropout(dropout)
        nn.init.zeros_(self.worth.weight)
        nn.init.zeros_(self.worth.bias)

    def forward(self, query: Tensor, traits: Tensor) -> Tensor:
        return torch.bmm(self.worth(self.dropout(query)), traits.transpose(1, 2))


class ResponseDetector(nn.Module):
    """Copies entities from the response; only the inference policy has one.

    `preference` [E] is added to the learned scores: a fixed order in which entities of a response are named.
    """

    preference: Tensor

    def __init__(self, hidden_size: int, preference: Tensor) -> None:
        super().__init__()
        self.project = nn.Linear(hidden_size, hidden_size, bias=False)
        self.register_buffer("preference", preference)

    def forward(self, states: Tensor, written: Written, evidence: PolicyEvidence) -> Detection:
        mentions = evidence.response_mentions
        assert mentions is not None, "a response detector needs the response"
        scores = torch.bmm(self.project(states), mentions.vectors.transpose(1, 2)) / states.shape[-1] ** 0.5
        scores = scores + self.preference[mentions.entities].unsqueeze(1)
        index = mentions.entities.unsqueeze(1).expand(-1, states.shape[1], -1)
        allowed = ~written.used.gather(-1, index) & mentions.mask.unsqueeze(1)
        return Detection(copies=Copies(rule_out(scores, allowed), mentions.entities))
