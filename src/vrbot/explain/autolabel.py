"""The auto-labeller: what the inference networks q(S|R) and q(A|R) hold for the labels of finished dialogues.

They read the physician's answer, so they serve for labelling and never for replying. Labels that are there are taken
for true: states go on from them. What has no label is proposed, with its probability under the networks.
Letters: N rows (turns), L span positions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrbot.dialogue.batching import Limits, SessionBatch, collate, sequential_batches
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.session import CATEGORIES
from vrbot.dialogue.splits import Split
from vrbot.dialogue.supervision import LabelMasks
from vrbot.errors import UsageError
from vrbot.explain.proposals import Kind, Proposal, ProposedSession, TurnProposals
from vrbot.model.fixed import MentionTracker, SilentPolicy
from vrbot.model.keyword_scores import SpanScores
from vrbot.model.policy_network import PolicyNetwork, WrittenAction
from vrbot.model.spans import Clamp, Span, WrittenSpan, one_hot_choice
from vrbot.model.vrbot import Heard, HeardResponse, VRBot
from vrbot.objective.labels import KnownLatents, known_latents

SESSIONS_AT_ONCE = 64
ROWS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Inferred:
    """The most probable state and action of every row, known labels in their places, and what is known."""

    state: WrittenSpan
    action: WrittenAction
    known: KnownLatents
    answered: Tensor  # [N]


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """A batch with what was inferred; `turns` [N] are the rows' turns in the split."""

    batch: SessionBatch
    inferred: Inferred
    turns: NDArray[np.int64]


class AutoLabeller:
    """Proposes labels with the inference networks of one model."""

    def __init__(self, model: VRBot, limits: Limits) -> None:
        if not isinstance(model, VRBot):
            raise UsageError(
                f"{type(model).__name__} has no inference networks to propose labels with: use vrbot or a variant"
            )
        self.model, self.limits = model, limits

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of label the model infers at all."""
        return (
            ("state",) if isinstance(self.model.inference_policy, SilentPolicy) else ("state", "category", "keywords")
        )

    @property
    def copied(self) -> tuple[Kind, ...]:
        """The kinds that repeat what the texts name and are never corrected, however many labels are learnt from."""
        policy = self.model.inference_policy
        found: list[Kind] = ["state"] if isinstance(self.model.inference_tracker, MentionTracker) else []
        if isinstance(policy, PolicyNetwork) and policy.ending_bias == -math.inf:
            found.append("keywords")
        return tuple(found)

    def propose(
        self, corpus: Corpus, split_name: str, model_name: str = "vrbot", sessions: Sequence[int] | None = None
    ) -> list[ProposedSession]:
        """Proposals for what these sessions of a split (all of it if None) have no labels of, in their order."""
        split, names = corpus.split(split_name), corpus.inventory.names
        chosen = range(split.num_sessions) if sessions is None else sessions
        turns: dict[int, TurnProposals] = {}
        for rows in self.label(split, chosen):
            turns |= zip(rows.turns.tolist(), self.proposals(rows.inferred, names), strict=True)
        found = []
        for session in chosen:
            own = range(int(split.session_offsets[session]), int(split.session_offsets[session + 1]))
            proposed = tuple(turns[turn] for turn in own)
            whole = corpus.session(split_name, session)
            found.append(ProposedSession(whole, proposed, split_name, model_name, self.copied))
        return found

    def uncertainty(self, split: Split, masks: LabelMasks | None = None) -> NDArray[np.float64]:
        """How many nats the networks are short of certainty about the labels each turn does not have [T].

        Kinds that are only copied do not count: to be sure of them says nothing.
        """
        short = np.zeros(split.num_turns)
        for rows in self.label(split, range(split.num_sessions), masks):
            of_kinds = self._shortfalls(rows.inferred)
            counted = [value for kind, value in of_kinds.items() if kind not in self.copied]
            if counted:
                short[rows.turns] = torch.stack(counted).sum(dim=0).double().numpy()
        return short

    def label(
        self,
        split: Split,
        sessions: Sequence[int],
        masks: LabelMasks | None = None,
        *,
        turn_by_turn: bool = False,
    ) -> Iterator[LabelledRows]:
        """What the networks hold for these sessions; `masks` say which labels may be looked at (None: all), and
        `turn_by_turn` that of those only the ones of turns before may be."""
        self.model.eval()
        wanted = np.asarray(sorted(sessions), dtype=np.int64)
        turns_per_session = split.turns_per_session
        for members in sequential_batches(split, SESSIONS_AT_ONCE, ROWS_AT_ONCE):
            chosen = members[np.isin(members, wanted)]
            if len(chosen):
                batch = collate(split, chosen, masks, self.limits)
                order = chosen[np.argsort(-turns_per_session[chosen], kind="stable")]  # as `collate` puts them
                turns = split.session_offsets[order][batch.session.numpy()] + batch.turn.numpy()
                yield LabelledRows(batch, infer(self.model, batch, turn_by_turn=turn_by_turn), turns)

    def _shortfalls(self, inferred: Inferred) -> dict[Kind, Tensor]:
        """-log probability of what is inferred [N], by kind; 0 where the label is known or there is no answer."""
        known, action = inferred.known, inferred.action
        found: dict[Kind, Tensor] = {"state": _chosen(inferred.state).sum(dim=1).masked_fill(known.state_known, 0.0)}
        if "category" in self.kinds:
            category = action.scores.category.amax(dim=1)
            keywords = _chosen(_written_keywords(action)).sum(dim=1)
            found["category"] = category.masked_fill(known.category_known | ~inferred.answered, 0.0)
            found["keywords"] = keywords.masked_fill(known.keywords_known | ~inferred.answered, 0.0)
        return {kind: (-log_prob).clamp_min(0.0) for kind, log_prob in found.items()}

    def proposals(self, inferred: Inferred, names: Sequence[str]) -> list[TurnProposals]:
        """For each row what has no label yet; an action only where somebody answered."""
        sureness = {kind: (-value).exp().tolist() for kind, value in self._shortfalls(inferred).items()}
        categories = inferred.action.scores.category.argmax(dim=1).tolist()
        spans = {"state": _named(inferred.state, names), "keywords": _named(_written_keywords(inferred.action), names)}
        known, answered = inferred.known, inferred.answered.tolist()
        rows: list[TurnProposals] = []
        for row in range(len(categories)):
            wanted = [
                kind
                for kind in self.kinds
                if not bool(getattr(known, f"{kind}_known")[row]) and (kind == "state" or answered[row])
            ]
            found: dict[Kind, Proposal] = {}
            for kind in wanted:
                sure = sureness[kind][row]
                if kind == "category":
                    found[kind] = Proposal(CATEGORIES[categories[row]], sure)
                else:
                    value, entities = spans[kind][row]
                    found[kind] = Proposal(value, sure, entities)
            rows.append(found)
        return rows


@torch.no_grad()
def infer(model: VRBot, batch: SessionBatch, *, turn_by_turn: bool = False) -> Inferred:
    """S^q along each session and A^q given it, the most probable ones; labels of the batch stand where they are.

    With `turn_by_turn` every turn is inferred as if only those before it were labelled: what is proposed to somebody
    who has come as far as that turn.
    """
    heard, response = model.hear(batch.inputs, batch.layout), model.hear_response(batch.targets)
    preference: Tensor = getattr(model.objective, "preference", torch.zeros(model.table.num_entities))
    known = known_latents(
        batch.targets, model.state_length, model.action_length, preference, model.categories.num_embeddings
    )
    before, known = known.state_clamp, known.only(()) if turn_by_turn else known
    state = _infer_states(model, heard, response, batch, known, before)
    action: WrittenAction = model.inference_policy.write(  # type: ignore[operator]
        model.policy_evidence(heard, state.span, response),
        model.action_length,
        one_hot_choice,
        one_hot_choice,
        known.action_clamp,
    )
    return Inferred(state, action, known, batch.targets.response_lengths > 0)


def _infer_states(
    model: VRBot, heard: Heard, response: HeardResponse, batch: SessionBatch, known: KnownLatents, before: Clamp
) -> WrittenSpan:
    """`known` are labels of the turns themselves, `before` those that the turns behind them go on from."""
    sizes = batch.layout.turn_sizes
    previous = model.first_state(batch.layout.num_sessions, heard.words.device)
    turns = zip(
        heard.context.summary.split(sizes),
        heard.mentions.split(sizes),
        response.encoded.summary.split(sizes),
        known.state_clamp.split(sizes),
        before.split(sizes),
        strict=True,
    )
    written: list[WrittenSpan] = []
    for summary, mentioned, said, clamp, given in turns:
        read, mentions = model.recall(previous.select(slice(0, len(summary))), mentioned, heard.table)
        written.append(
            model.inference_tracker.write(  # type: ignore[operator]
                (summary, read.summary, said), model.state_length, mentions, heard.table, one_hot_choice, clamp
            )
        )
        previous = written[-1].span.where(given.span, given.rows)
    spans = Span(torch.cat([each.span.weights for each in written]))
    return WrittenSpan(torch.cat([each.log_probs for each in written]), spans)


def _written_keywords(action: WrittenAction) -> WrittenSpan:
    scores = action.scores.keywords
    assert isinstance(scores, SpanScores), "the inference policy always writes a span"
    return WrittenSpan(scores.log_probs, action.action.keywords)


def _chosen(written: WrittenSpan) -> Tensor:
    """Log probabilities of the symbols that were written [N, L]; a span that has ended goes on for certain."""
    return written.log_probs.gather(2, written.span.ids.unsqueeze(2)).squeeze(2)


def _named(written: WrittenSpan, names: Sequence[str]) -> list[tuple[tuple[str, ...], tuple[float, ...]]]:
    """Of each row the entities of its span, and the probability of each where it stands."""
    rows = zip(written.span.ids.tolist(), written.span.mask.tolist(), _chosen(written).exp().tolist(), strict=True)
    found = []
    for entities, there, sure in rows:
        named = [(names[e], min(p, 1.0)) for e, is_one, p in zip(entities, there, sure, strict=True) if is_one]
        found.append((tuple(name for name, _ in named), tuple(p for _, p in named)))
    return found
