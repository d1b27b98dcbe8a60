"""D@1 and D@2: how varied the replies of a split are, taken together."""

from __future__ import annotations

from collections.abc import Sequence

from vrbot.evaluation.overlap import Words, word_groups


def distinct(replies: Sequence[Words], size: int) -> float | None:
    """Distinct n-grams of all replies in percent of all their n-grams; none reaches from one reply into the next.

    Replies without any n-gram give 0; no turns, None. It is no sum over turns and falls as the split grows, so it
    is compared between systems on one split only and takes no part in significance tests.
    """
    if not replies:
        return None
    groups = [group for reply in replies for group in word_groups(reply, size)]
    return 100 * len(set(groups)) / len(groups) if groups else 0.0
