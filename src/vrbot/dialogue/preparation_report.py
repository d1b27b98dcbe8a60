"""What a preparation found: the sizes of a corpus, and how much of it the knowledge covers."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from vrbot.dialogue.splits import Split
from vrbot.dialogue.vocabulary import UNK
from vrbot.knowledge.aliases import DroppedAlias

MOST_FREQUENT = 20
NAMED_TIMES = (1, 5)
"""How often training must name an entity to be counted as named, and as named often enough to be learnt."""


@dataclass(frozen=True)
class SplitCounts:
    """What a split holds; unknown words and coverage are counts here, so that splits can be added up."""

    dialogues: int
    turns: int
    tokens: int
    unknown_tokens: int
    utterances: int
    dialogues_with_entities: int
    utterances_with_entities: int


@dataclass(frozen=True)
class KnowledgeCounts:
    """The graph as its file has it (different triples, the entities they connect), and what was made of the names."""

    triples: int
    connected_entities: int
    relations: int
    entities: int
    surfaces: int
    aliases_dropped: tuple[DroppedAlias, ...]


@dataclass(frozen=True)
class PreparationReport:
    """The report of a preparation: `named` says how many entities the training texts mention at least so many times,
    `unlinked` are labels that name no entity of the inventory."""

    splits: dict[str, SplitCounts]
    knowledge: KnowledgeCounts
    named: dict[int, int]
    vocabulary: int
    characters: int
    unlinked: Counter[str]
    skipped: int
    repairs: dict[str, int]
    fingerprint: str
    input_bytes: int
    seconds: float

    @property
    def total(self) -> SplitCounts:
        """All splits together."""
        rows = [asdict(counts) for counts in self.splits.values()]
        return SplitCounts(**{name: sum(row[name] for row in rows) for name in SplitCounts.__dataclass_fields__})

    def as_dict(self) -> dict[str, Any]:
        """The report for machines; shares are percentages."""
        total, knowledge = self.total, self.knowledge
        return {
            "graph": {
                "triples": knowledge.triples,
                "entities": knowledge.connected_entities,
                "relations": knowledge.relations,
                "aliases_dropped": len(knowledge.aliases_dropped),
            },
            "dialogues": total.dialogues,
            "turns": total.turns,
            "vocabulary": self.vocabulary,
            "coverage": {
                "dialogues": percentage(total.dialogues_with_entities, total.dialogues),
                "utterances": percentage(total.utterances_with_entities, total.utterances),
            },
            "tokens": total.tokens,
            "unknown_words": percentage(total.unknown_tokens, total.tokens),
            "characters": self.characters,
            "entities": knowledge.entities,
            "surfaces": knowledge.surfaces,
            "entities_named": {str(times): count for times, count in self.named.items()},
            "splits": {name: asdict(counts) for name, counts in self.splits.items()},
            "aliases_dropped": [asdict(dropped) for dropped in knowledge.aliases_dropped],
            "unlinked_labels": {
                "labels": self.unlinked.total(),
                "names": len(self.unlinked),
                "most_frequent": dict(most_frequent(self.unlinked)),
            },
            "skipped": self.skipped,
            "repairs": self.repairs,
            "fingerprint": self.fingerprint,
            "seconds": round(self.seconds, 3),
            "megabytes_per_second": round(self.input_bytes / 1e6 / max(self.seconds, 1e-9), 2),
        }


def most_frequent(labels: Counter[str]) -> list[tuple[str, int]]:
    """The most frequent labels, equally frequent ones in the order of their names."""
    return sorted(labels.items(), key=lambda item: (-item[1], item[0]))[:MOST_FREQUENT]


def percentage(part: int, whole: int) -> float:
    """How much of the whole a part is, 0 where there is nothing."""
    return 100.0 * part / whole if whole else 0.0


def count_split(split: Split) -> SplitCounts:
    """Counts what a split holds; an utterance is a text that has tokens."""
    texts = split.texts
    tokens = np.diff(texts.utterance_offsets)
    mentions_by_session = np.diff(texts.mention_offsets[2 * split.session_offsets])
    return SplitCounts(
        dialogues=split.num_sessions,
        turns=split.num_turns,
        tokens=len(texts.tokens),
        unknown_tokens=int((texts.tokens == UNK).sum()),
        utterances=int((tokens > 0).sum()),
        dialogues_with_entities=int((mentions_by_session > 0).sum()),
        utterances_with_entities=int((np.diff(texts.mention_offsets) > 0).sum()),
    )
