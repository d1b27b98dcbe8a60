"""The trivial systems by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vrbot.baselines.references.answers import Experience, Reference
from vrbot.baselines.references.frequent import copy_the_state, most_frequent_keyword, most_frequent_reply
from vrbot.baselines.references.linear import linear_action
from vrbot.baselines.references.retrieval import retrieval


@dataclass(frozen=True)
class ReferenceEntry:
    """A trivial system: its idea in a sentence, and how it is learnt."""

    idea: str
    learn: Callable[[Experience], Reference]


REFERENCES: Mapping[str, ReferenceEntry] = {
    "most-frequent-reply": ReferenceEntry("says the most frequent reply of the training split", most_frequent_reply),
    "most-frequent-keyword": ReferenceEntry("always names the most frequent keyword", most_frequent_keyword),
    "copy-the-state": ReferenceEntry("names every entity said so far", copy_the_state),
    "retrieval": ReferenceEntry("says what followed the most similar history (BM25)", retrieval),
    "linear-action": ReferenceEntry(
        "names keywords predicted from the history's character n-grams by logistic regression", linear_action
    ),
}
