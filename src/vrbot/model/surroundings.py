"""What the words around a mention say of its being part of the patient's state.

Whether a finding is there is told by words that mean the same for every entity: what stands before and behind its name,
and, where the physician asked, the patient's answer. Weighed as such they are learnt from few labels.
Letters: N rows (turns), T context tokens, M mentions, F cues, V words, E entities.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vrbot.dialogue.batching import TurnInputs
from vrbot.dialogue.vocabulary import SEP

NO_CUE = -1
NUM_ROLES = 5
"""A word before or behind a patient's mention, before or behind a physician's, in the answer to the physician."""

DOUBT = -0.4
"""Mentions are not offered for copying where less (in nats) speaks for them."""


class Surroundings(nn.Module):
    """Which mentions may be part of the state: all, until `worth` has been set to what labels say of the cues."""

    fitted = ("worth",)
    worth: Tensor

    def __init__(self, num_words: int, num_entities: int, reach: int) -> None:
        super().__init__()
        self.num_words, self.num_entities, self.reach = num_words, num_entities, reach
        self.register_buffer("worth", torch.zeros(NUM_ROLES * num_words + 2 + num_entities))

    @property
    def num_cues(self) -> int:
        return len(self.worth)

    def forward(self, inputs: TurnInputs) -> Tensor:
        """Whether enough speaks for each mention [N, M]."""
        cues = self.cues(inputs)
        support = torch.where(cues >= 0, self.worth[cues.clamp_min(0)], 0.0).sum(dim=2)
        return (support >= DOUBT) & (inputs.mention_entities >= 0)

    def cues(self, inputs: TurnInputs) -> Tensor:
        """What there is to go by for each mention [N, M, F]: words in their roles, the speaker, the entity."""
        exists = (inputs.mention_entities >= 0).unsqueeze(2)
        begin = NUM_ROLES * self.num_words
        speaker = begin + inputs.patient_mentions.long().unsqueeze(2)
        entity = begin + 2 + inputs.mention_entities.unsqueeze(2)
        found = torch.cat((self._around(inputs), self._answers(inputs), speaker, entity), dim=2)
        return torch.where(exists, found, NO_CUE)

    def _around(self, inputs: TurnInputs) -> Tensor:
        """The neighbours of each mention, in its own utterance only [N, M, 2 * reach]."""
        context, by_patient = inputs.context, inputs.patient_mentions.unsqueeze(2)
        steps = torch.arange(1, self.reach + 1, device=context.device)
        offsets = torch.cat((-steps, steps))
        places = inputs.mention_positions.unsqueeze(2) + offsets
        border = _border(context).view(-1, 1, 1)
        first = torch.where(by_patient, border + 1, 0)
        last = torch.where(by_patient, inputs.context_lengths.view(-1, 1, 1), border)
        rows = torch.arange(len(context), device=context.device).view(-1, 1, 1)
        words = context[rows, places.clamp(0, max(context.shape[1] - 1, 0))]
        role = 2 * (~by_patient).long() + (offsets > 0)
        return torch.where((places >= first) & (places < last), words + role * self.num_words, NO_CUE)

    def _answers(self, inputs: TurnInputs) -> Tensor:
        """The patient's words, for each mention that is the physician's [N, M, T]."""
        context = inputs.context
        places = torch.arange(context.shape[1], device=context.device)
        said = (places > _border(context).unsqueeze(1)) & (places < inputs.context_lengths.unsqueeze(1))
        words = torch.where(said, context + (NUM_ROLES - 1) * self.num_words, NO_CUE)
        return torch.where(inputs.patient_mentions.unsqueeze(2), NO_CUE, words.unsqueeze(1))


def _border(context: Tensor) -> Tensor:
    """Where the patient's utterance is parted from the answer before it [N]; -1 where there is nothing before it."""
    places = torch.arange(context.shape[1], device=context.device)
    return torch.where(context == SEP, places, -1).amax(dim=1)
