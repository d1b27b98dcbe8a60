"""The response generator: attends to context, state and action; generates or copies each word (section 3.5, Eq. 16).

Letters: N rows, R response positions, P real positions of all rows, J slots to copy from, V words, H hidden size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn

from vrbot.errors import ConfigError
from vrbot.model.context_encoder import Context, PolicyReading
from vrbot.model.policy_network import Action
from vrbot.model.reply_cells import ReadingsFed, ReadingsLate
from vrbot.model.reply_sources import ReplySources, blocks_of
from vrbot.model.spans import Span
from vrbot.nets.attention import Memory
from vrbot.nets.copying import merge_copies_in_place, same_ids, target_log_prob
from vrbot.nets.encoders import Encoded
from vrbot.nets.prepared import Precision, Prepared, Projection, RoundedProjection, int8_is_possible
from vrbot.nets.vocabulary_scores import target_and_total_of, with_bias

ROWS_COPYING = 16
"""How many rows look for words to copy at once."""

NO_KEYWORD = -2
"""Where there is none; no word means it."""

SLIGHT = 1e-6
"""What is left at least of a distribution that words are taken out of."""


@dataclass(frozen=True, eq=False)
class Conditions:
    """What a reply is written from: W = (R_{t-1}, U_t, S_t, A^k_t) and their vectors.

    `by_policy` is what the policy read, for whoever asks why it chose so; `guessed` says whose action is a guess of the
    prior's (None: nobody's), which scoring minds and a search does not.
    """

    context_words: Tensor  # [N, T]
    context: Context
    state: Span
    state_read: Encoded
    action: Action
    keywords_read: Encoded
    by_policy: PolicyReading | None = None
    guessed: Tensor | None = None  # [N]

    def select(self, rows: Tensor) -> Conditions:
        return Conditions(
            self.context_words[rows],
            self.context.select(rows),
            self.state.select(rows),
            self.state_read.select(rows),
            self.action.select(rows),
            self.keywords_read.select(rows),
            None if self.by_policy is None else self.by_policy.select(rows),
            None if self.guessed is None else self.guessed[rows],
        )


@dataclass(frozen=True, eq=False)
class ReplyMemory:
    """Everything a decoder reads again at each step."""

    readings: tuple[Memory, ...]
    copy_mask: Tensor  # [N, J]
    copy_words: Tensor  # [N, J]
    keywords: Tensor  # [N, L] entity ids
    barred: Tensor | None = None  # [N, W] of the words that name entities, those a search may not write

    def select(self, rows: Tensor | slice) -> ReplyMemory:
        return ReplyMemory(
            tuple(memory.select(rows) for memory in self.readings),
            self.copy_mask[rows],
            self.copy_words[rows],
            self.keywords[rows],
            None if self.barred is None else self.barred[rows],
        )

    @cached_property
    def same_words(self) -> Tensor:
        """Which slots hold the same word [N, J, J]."""
        return same_ids(self.copy_words)

    @property
    def copy_vectors(self) -> Tensor:
        """The vectors of all slots that can be copied [N, J, H]."""
        return torch.cat([memory.values for memory in self.readings], dim=1)

    def left(self, named: Tensor) -> tuple[Memory, ...]:
        """The readings when these keywords have been named [N, Q, L]: only what is left of them is read."""
        *others, keywords = self.readings
        return (*others, keywords.masked(keywords.mask.unsqueeze(1) & ~named))


@dataclass(frozen=True, eq=False)
class DecoderState:
    """One row per hypothesis: the hidden state [R, H], the keywords named so far [R, L]; the memory once per item."""

    hidden: Tensor
    named: Tensor
    memory: ReplyMemory

    def select(self, rows: Tensor, items: Tensor | None) -> DecoderState:
        memory = self.memory if items is None else self.memory.select(items)
        return DecoderState(self.hidden[rows], self.named[rows], memory)


class ResponseGenerator(nn.Module):
    """A GRU decoder whose output words share their vectors with the input words.

    With `coverage` it reads only those action keywords that it has not named yet, by any of their surface forms
    (`meanings` [V, K], -1 where a word means nothing): so it learns to name all, each once, and then to stop.
    `keyword_bonus` is how much (in nats) a search prefers the names of the keywords that are left; with `only_keywords`
    it names no entity that is not one of the keywords. With `doubts` it is told which actions are guesses: so it learns
    from them what physicians say when the prior is wrong, and not to distrust an action.
    """

    entity_words: Tensor
    word_entity: Tensor
    meanings: Tensor
    naming: Tensor

    def __init__(
        self,
        words: nn.Embedding,
        entity_words: Tensor,
        category_size: int,
        hidden_size: int,
        dropout: float,
        bos: int,
        cell: ReadingsFed | ReadingsLate,
        meanings: Tensor,
        *,
        coverage: bool,
        keyword_bonus: float = 0.0,
        only_keywords: bool = False,
        doubts: bool = False,
        precision: Precision = "float32",
    ) -> None:
        """`precision` is that of the words' scores in a search; training and scoring are always in float32."""
        super().__init__()
        if precision == "int8" and not int8_is_possible():
            raise ConfigError(
                "int8 products are not safe here: set decoding.precision=float32, or, before torch is imported, the "
                "environment's ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16"
            )
        self.words, self.bos, self.cell, self.coverage = words, bos, cell, coverage
        self.keyword_bonus, self.only_keywords = keyword_bonus, only_keywords
        self.begin = nn.Linear(3 * hidden_size + category_size, hidden_size)
        self.output = nn.Linear(hidden_size, words.embedding_dim)
        self.output_bias = nn.Parameter(torch.zeros(words.num_embeddings))
        self.copy_query = nn.Linear(hidden_size, hidden_size, bias=False)
        self.doubt = nn.Parameter(torch.zeros(hidden_size)) if doubts else None
        self.dropout = nn.Dropout(dropout)
        self._projection: Prepared[Projection | RoundedProjection]
        self._projection = Prepared(Projection if precision == "float32" else RoundedProjection)
        self.register_buffer("entity_words", entity_words.long(), persistent=False)
        word_entity = torch.full((words.num_embeddings,), len(entity_words))
        word_entity[entity_words.long()] = torch.arange(len(entity_words))
        self.register_buffer("word_entity", word_entity, persistent=False)
        self.register_buffer("meanings", meanings, persistent=False)
        self.register_buffer("naming", (meanings >= 0).any(dim=1).nonzero().squeeze(1), persistent=False)

    @property
    def word_bias(self) -> nn.Parameter:
        return self.output_bias

    def initial(self, given: Conditions, categories: Tensor) -> DecoderState:
        """b^R_0 = W_d [h^c; h^S; e^{A^c}; h^{A^k}], and the memories; categories are vectors [N, D].

        Whoever speaks does what the action says: a guess is taken for certain here.
        """
        response = given.context_words.new_zeros(len(given.context_words), 0)
        begun = self._begin(self.sources(replace(given, guessed=None), response), categories)
        memory = replace(begun.memory, barred=self._barred(begun.memory)) if self.only_keywords else begun.memory
        return replace(begun, memory=replace(memory, readings=self.cell.prepared(memory.readings)))

    def _barred(self, memory: ReplyMemory) -> Tensor:
        """Which of the words that name entities name none of the keywords [N, W]."""
        keywords = memory.keywords.masked_fill(~memory.readings[-1].mask, NO_KEYWORD)
        own = self._names(self.naming.expand(len(keywords), -1), keywords)  # [N, W, L]
        return ~own.any(dim=2)

    def _begin(self, given: ReplySources, categories: Tensor) -> DecoderState:
        parts = (given.context.summary, given.state_read.summary, categories, given.keywords_read.summary)
        memory = _memory(given)
        nothing = torch.zeros_like(memory.keywords, dtype=torch.bool)
        return DecoderState(torch.tanh(self.begin(torch.cat(parts, dim=-1))), nothing, memory)

    def log_prob(self, given: Conditions, categories: Tensor, response: Tensor, lengths: Tensor) -> Tensor:
        """Log p(R | ...) of each row [N], in nats; rows without a response give 0."""
        return self.log_prob_of(self.sources(given, response), categories, response, lengths)

    def log_prob_of(self, given: ReplySources, categories: Tensor, response: Tensor, lengths: Tensor) -> Tensor:
        """The same from sources that know the responses.

        Rows are taken in blocks of about the same context length, longest response first, so that little padding is
        computed.
        """
        total = torch.zeros(len(lengths), device=response.device)
        blocks = blocks_of(lengths, given.context.mask.sum(dim=1)[given.rows])
        vocabulary = with_bias(self.words.weight, self.output_bias)
        for rows, block in zip(blocks, given.in_blocks(blocks), strict=True):
            words = response[rows, : int(lengths[rows[0]])]
            per_word, row = self._word_log_probs(block, categories[rows], words, lengths[rows], vocabulary)
            total = total.index_add(0, rows[row], per_word)
        return total

    def sources(self, given: Conditions, response: Tensor) -> ReplySources:
        """The conditions as far as scoring these responses [N, R] needs them."""
        spans = (given.state, given.action.keywords)
        words = [self.entity_words[span.ids.clamp_max(len(self.entity_words) - 1)] for span in spans]
        return ReplySources(
            given.context_words,
            given.context,
            torch.arange(len(response), device=response.device),
            given.state_read,
            self._marked(given),
            torch.cat(words, dim=1),
            given.action.keywords.ids,
            self._span_match(response, spans),
        )

    def _marked(self, given: Conditions) -> Encoded:
        """The keywords as they are read, those of guessed actions with the doubt."""
        if self.doubt is None or given.guessed is None:
            return given.keywords_read
        mark = given.guessed.unsqueeze(1) * self.doubt  # [N, H]
        read = given.keywords_read
        return replace(read, tokens=read.tokens + mark.unsqueeze(1), summary=read.summary + mark)

    def _word_log_probs(
        self, given: ReplySources, categories: Tensor, response: Tensor, lengths: Tensor, vocabulary: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Log probability of every real word [P], and the row it stands in [P]."""
        start = self._begin(given, categories)
        first = torch.full_like(response[:, :1], self.bos)
        before = torch.cat((first, response[:, :-1]), dim=1)
        readings = start.memory.readings
        if self.coverage:
            readings = start.memory.left(self._names(before, start.memory.keywords).cumsum(dim=1) > 0)
        outputs = self.cell.along(start.hidden, self.dropout(self.words(before)), lengths, readings)  # [N, R, H]
        there = torch.arange(response.shape[1], device=response.device) < lengths.unsqueeze(1)
        outputs = outputs[there]  # [P, H]
        generated = target_and_total_of(self.output(self.dropout(outputs)), vocabulary, response[there])
        return self._with_copies(generated, self.copy_query(outputs), there, response, given), there.nonzero()[:, 0]

    @torch.no_grad()
    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Log probabilities of the next word [R, V] after the tokens [R]; several rows per item are side by side."""
        items, readings, named = len(state.memory.copy_mask), state.memory.readings, state.named
        if self.coverage or self.keyword_bonus:
            said = self._names(tokens.unflatten(0, (items, -1)), state.memory.keywords)
            named = named | said.flatten(0, 1)
        if self.coverage:
            readings = state.memory.left(named.unflatten(0, (items, -1)))
        advanced = self.cell.advance(state.hidden, self.words(tokens), readings)
        generation = self._projection.of(self.words.weight, self.output_bias)(self.output(advanced.output))
        scores = _copy_scores(self.copy_query(advanced.output).unflatten(0, (items, -1)), state.memory)
        memory = state.memory
        log_probs = merge_copies_in_place(
            generation.unflatten(0, (items, -1)), scores, memory.copy_words, memory.same_words
        )
        return log_probs.flatten(0, 1), DecoderState(advanced.hidden, named, state.memory)

    @torch.no_grad()
    def search_step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """`step` with the keywords that are left made more probable and barred words impossible, so that the reply says
        what the action says."""
        log_probs, following = self.step(tokens, state)
        there = state.memory.readings[-1].mask  # [items, L]
        by_item = log_probs.unflatten(0, (len(there), -1))
        if state.memory.barred is not None:
            self._bar(by_item, state.memory.barred)
        if self.keyword_bonus and there.shape[1]:
            left = there.unsqueeze(1) & ~following.named.unflatten(0, (len(there), -1))  # [items, rows of each, L]
            words = state.memory.copy_words[:, -there.shape[1] :].unsqueeze(1).expand_as(left)
            own = by_item.gather(2, words).masked_fill(~left, -math.inf)
            more = math.expm1(self.keyword_bonus) * own.exp().sum(dim=2, keepdim=True)
            by_item.scatter_reduce_(2, words, own + self.keyword_bonus, "amax").sub_(more.log1p())
        return log_probs, following

    def _bar(self, log_probs: Tensor, barred: Tensor) -> None:
        """Takes the barred words [N, W] out of distributions [N, Q, V], where they lie."""
        own, barred = log_probs[:, :, self.naming], barred.unsqueeze(1)
        gone = own.exp().masked_fill(~barred, 0.0).sum(dim=2, keepdim=True).clamp_max(1.0 - SLIGHT)
        log_probs[:, :, self.naming] = own.masked_fill(barred, -math.inf)
        log_probs.sub_((-gone).log1p())

    def _names(self, words: Tensor, keywords: Tensor) -> Tensor:
        """Which of the keywords [N, L] each word [N, Q] names [N, Q, L]."""
        meant = self.meanings[words]  # [N, Q, K]
        return (meant.unsqueeze(-1) == keywords[:, None, None, :]).any(dim=2)

    def _with_copies(
        self, generated: tuple[Tensor, Tensor], query: Tensor, there: Tensor, response: Tensor, given: ReplySources
    ) -> Tensor:
        """Log probability of the words that are `there` [P]: generated (logits and logsumexp of all) or copied."""
        memory, masks, parts = _memory(given), there.split(ROWS_COPYING), []
        counts = [int(mask.sum()) for mask in masks]
        by_part = zip(masks, *(each.split(counts) for each in (*generated, query)), strict=True)
        for i, (mask, logit, total, asking) in enumerate(by_part):
            rows, width = slice(i * ROWS_COPYING, i * ROWS_COPYING + len(mask)), int(mask.sum(dim=1).max())
            index = mask.nonzero(as_tuple=True)  # rows stand longest first: little padding in each part
            asking = asking.new_zeros(len(mask), width, asking.shape[1]).index_put(index, asking)
            scores = _copy_scores(asking, memory.select(rows))[index]  # [p, J]
            words = response[rows, :width].unsqueeze(-1)
            in_context = (given.context_words[rows].unsqueeze(1) == words).to(scores.dtype)
            match = torch.cat((in_context, given.match[rows, :width]), dim=-1)[index]
            parts.append(target_log_prob(logit, total, scores, match))
        return torch.cat(parts)

    def _span_match(self, response: Tensor, spans: Sequence[Span]) -> Tensor:
        """How far each span position holds each target word [N, R, L]: as far as its weights say."""
        entity = self.word_entity[response]  # [N, R]; E where the word is no entity, and no span holds that
        parts = [
            span.weights.gather(2, entity.unsqueeze(1).expand(-1, span.weights.shape[1], -1)).transpose(1, 2)
            for span in spans
        ]
        return torch.cat(parts, dim=-1) * (entity < len(self.entity_words)).unsqueeze(-1)


def _copy_scores(query: Tensor, memory: ReplyMemory) -> Tensor:
    """h^W_j . b, projected [N, Q, H] -> [N, Q, J]."""
    scores = torch.cat([part.products(query) for part in memory.readings], dim=-1)
    return scores.masked_fill(~memory.copy_mask.unsqueeze(1), -math.inf)


def _memory(given: ReplySources) -> ReplyMemory:
    """Of sources whose rows have a context each."""
    parts = (given.context, given.state_read, given.keywords_read)
    return ReplyMemory(
        tuple(Memory(part.tokens, part.mask) for part in parts),
        torch.cat([part.mask for part in parts], dim=1),
        torch.cat((given.context_words, given.span_words), dim=1),
        given.keywords,
    )
