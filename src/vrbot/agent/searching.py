"""How an agent looks for its words: the best of a beam, word by word, or by chance with a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from vrbot.agent.replies import search, writing_rules
from vrbot.config import DecodingSettings
from vrbot.decoding.sampling import check_sampling, sampling
from vrbot.decoding.step import Decoded
from vrbot.dialogue.vocabulary import BOS, EOS
from vrbot.errors import ConfigError
from vrbot.model.contract import DialogueModel, Perception

Method = Literal["beam", "greedy", "sampling"]


@dataclass(frozen=True)
class Search:
    """A way to search; the same search gives the same reply to the same conversation, sampling too.

    `settings` hold the width of the beam and the length of a reply (None: the model's own); the rest is for sampling.
    """

    method: Method = "beam"
    settings: DecodingSettings | None = None
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise ConfigError(f"{self.method!r} is not a search; known: {', '.join(get_args(Method))}")
        if self.method == "sampling":
            check_sampling(self.temperature, self.top_k, self.top_p)
        elif (self.temperature, self.top_k, self.top_p) != (1.0, None, None):
            raise ConfigError(f"temperature, top_k and top_p are of the search 'sampling', not of {self.method!r}")


def find_words(
    model: DialogueModel, perception: Perception, row: int, how: Search, own: DecodingSettings
) -> tuple[int, ...]:
    """The word ids of the reply to one row; unknown words and padding are never among them."""
    decoded = _decode(model, perception, torch.tensor([row]), how, how.settings or own)
    return tuple(decoded.tokens[0, 0, : int(decoded.lengths[0, 0])].tolist())


def _decode(
    model: DialogueModel, perception: Perception, rows: Tensor, how: Search, settings: DecodingSettings
) -> Decoded:
    if how.method == "beam":
        return search(model, perception, rows, settings)
    if how.method == "greedy":
        return search(model, perception, rows, settings.model_copy(update={"beam": 1}))
    step, state = model.begin_reply(perception, rows)
    return sampling(
        step,
        state,
        len(rows),
        BOS,
        EOS,
        settings.max_length,
        generator=torch.Generator().manual_seed(how.seed),
        temperature=how.temperature,
        top_k=how.top_k,
        top_p=how.top_p,
        adjust=writing_rules(settings),
    )
