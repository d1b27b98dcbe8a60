"""Where the words a model reads stand in what was said, so that they can be marked there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vrbot.dialogue.encoding import TextEncoder
from vrbot.dialogue.segment import segment
from vrbot.explain.evidence import Place

_SURROGATE = re.compile("[\ud800-\udfff]")


def word_spans(text: str, encoder: TextEncoder) -> list[tuple[int, int]]:
    """For each word the encoder makes of a text, where it begins and ends there; words of one mention share a place."""
    text = _SURROGATE.sub("\ufffd", text)
    spans: list[tuple[int, int]] = []
    cursor = 0
    for token in segment(text, encoder.linker, encoder.segmenter):
        found = re.compile(r"\s+".join(map(re.escape, token.text.split()))).search(text, cursor)
        start, end = (cursor, cursor) if found is None else found.span()
        count = len(encoder.vocabulary.spell_mention(token.text, token.entities)) if token.entities else 1
        spans += [(start, end)] * count
        cursor = end
    return spans


@dataclass(frozen=True)
class ContextPlaces:
    """The places of a turn's context positions (the answer before, a separator, what the patient says)."""

    places: tuple[Place | None, ...]
    texts: tuple[str, ...]

    @classmethod
    def of(cls, conversation: Sequence[tuple[str, str]], length: int, encoder: TextEncoder) -> ContextPlaces:
        """Of the last turn's context of `length` words; a longer one was cut at its beginning."""
        turn = len(conversation) - 1
        before, now = conversation[turn - 1][1] if turn else "", conversation[turn][0]
        answered = [Place("physician", turn - 1, i, *span) for i, span in enumerate(word_spans(before, encoder))]
        said = [Place("patient", turn, i, *span) for i, span in enumerate(word_spans(now, encoder))]
        places: list[Place | None] = [*(answered if turn else ()), None, *said]
        kept = places[len(places) - length :] if length else []
        texts = {"physician": before, "patient": now}
        return cls(tuple(kept), tuple("" if at is None else texts[at.speaker][at.start : at.end] for at in kept))
