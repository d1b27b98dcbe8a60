"""Replies to several conversations at once, each to the last bit what it would have been alone.

Sums over a batch are rounded differently than sums over one row, so what a batch computes may differ in the last bit.
Only the words are taken from it, and only where that cannot matter: the best hypothesis leads by far more than
rounding, and what the batch perceived is what the conversation alone makes the model perceive. Every number of a
reply is computed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from vrbot.agent.replies import search
from vrbot.agent.reply import Reply
from vrbot.agent.respond import Agent
from vrbot.dialogue.batching import SessionBatch, collate, limits_of
from vrbot.dialogue.session import CATEGORIES
from vrbot.dialogue.splits import Split, no_labels
from vrbot.model.contract import DialogueModel, Perception
from vrbot.serving.safety_desk import Conversation

FEWEST = 6
"""So many are searched for together; with fewer, to perceive them once more costs what the search together saves."""

SAFE_LEAD = 1e-3
"""Of the best hypothesis over the second, in nats; rounding moves a log probability by less than a hundredth of it."""

Words = tuple[int, ...]


@dataclass(frozen=True)
class Found:
    """Words a batch found for one conversation, and what it had perceived when it did."""

    words: Words
    state: tuple[str, ...] | None
    category: str | None
    keywords: tuple[str, ...] | None

    def agrees_with(self, reply: Reply) -> bool:
        """Whether the reply, computed alone, comes of the same state and action."""
        state = None if reply.state is None else tuple(entity.name for entity in reply.state)
        keywords = None if reply.keywords is None else tuple(keyword.name for keyword in reply.keywords)
        pairs = ((state, self.state), (reply.category, self.category), (keywords, self.keywords))
        return all(alone is None or alone == together for alone, together in pairs)


def replies_together(
    agent: Agent, conversations: Sequence[Conversation], reply: Callable[[Conversation, Words | None], Reply]
) -> Iterator[Reply]:
    """What `reply` gives for each conversation, each once it is there.

    Words a batch has found are handed to `reply`, else it looks for them.
    """
    found = find_together(agent, conversations) if len(conversations) >= FEWEST else [None] * len(conversations)
    for conversation, each in zip(conversations, found, strict=True):
        told = None if each is None else reply(conversation, each.words)
        good = told is not None and each is not None and each.agrees_with(told)
        yield told if good and told is not None else reply(conversation, None)


@torch.no_grad()
def find_together(agent: Agent, conversations: Sequence[Conversation]) -> list[Found | None]:
    """The words of each reply; None where they should be looked for alone."""
    decoding = agent.config.decoding
    if decoding.beam < 2:
        return [None] * len(conversations)
    model: DialogueModel = agent.pretrained.model.eval()  # type: ignore[assignment]
    batch = _batch_of(agent, conversations)
    perception = model.perceive(batch.inputs, batch.layout)
    rows = _last_rows(batch, len(conversations))
    decoded = search(model, perception, torch.tensor(rows), decoding, num_results=2)
    shortest = decoded.lengths[:, :2].amin(dim=1).clamp_min(1)  # a score is in nats per length ** exponent
    leads = ((decoded.scores[:, 0] - decoded.scores[:, 1]) * shortest**decoding.length_penalty).tolist()
    return [
        _found(agent, perception, row, tuple(decoded.tokens[place, 0, : int(decoded.lengths[place, 0])].tolist()))
        if leads[place] > SAFE_LEAD
        else None
        for place, row in enumerate(rows)
    ]


def _batch_of(agent: Agent, conversations: Sequence[Conversation]) -> SessionBatch:
    """All conversations in one batch; the last answer of each is left out, as it is when one is heard alone."""
    heard = [[*conversation[:-1], (conversation[-1][0], "")] for conversation in conversations]
    texts = [text for conversation in heard for turn in conversation for text in turn]
    lengths = [len(conversation) for conversation in heard]
    split = Split(
        session_ids=tuple(str(place) for place in range(len(heard))),
        session_offsets=np.cumsum([0, *lengths]).astype(np.int64),
        texts=agent.pretrained.corpus.encoder.encode(texts),
        labels=no_labels(sum(lengths)),
    )
    return collate(split, range(len(heard)), limits=limits_of(agent.config.network))


def _last_rows(batch: SessionBatch, count: int) -> list[int]:
    """The row of each conversation's last turn; a batch may hold its sessions in another order."""
    last = {batch.session_ids[session]: row for row, session in enumerate(batch.session.tolist())}
    return [last[str(place)] for place in range(count)]


def _found(agent: Agent, perception: Perception, row: int, words: Words) -> Found:
    names = agent.pretrained.corpus.inventory.names
    spans = [
        None if span is None else tuple(names[entity] for entity in span[row].tolist() if entity >= 0)
        for span in (perception.state, perception.keywords)
    ]
    category = None if perception.category is None else CATEGORIES[int(perception.category[row].argmax())]
    return Found(words, spans[0], category, spans[1])
