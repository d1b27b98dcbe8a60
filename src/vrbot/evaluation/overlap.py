"""B@2 and R@2: how much of the physician's wording a reply has (protocol `vrbot`, on words)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU

from vrbot.evaluation.pooling import Floats, PooledScore, dense_rows, mean_score

Words = Sequence[str]


class NumberedWords:
    """Words as numbers in a text, so that a library that cuts text at blanks sees exactly the given words.

    Handed to libraries as they are, words of other scripts may be dropped and names of several words cut up.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def text(self, words: Words) -> str:
        return " ".join(str(self._numbers.setdefault(word, len(self._numbers))) for word in words)

    @staticmethod
    def tokenize(text: str) -> list[str]:
        """The tokenizer for rouge-score; its own keeps nothing but Latin letters and digits."""
        return text.split()


def bleu_2(replies: Sequence[Words], references: Sequence[Words]) -> float | None:
    """Corpus BLEU of words and word pairs by sacrebleu, unsmoothed, 0-100; None without turns.

    Without any pair of words in all replies it is 0, as sacrebleu has it.
    """
    if not replies:
        return None
    numbered = NumberedWords()
    scorer = BLEU(tokenize="none", max_ngram_order=2, smooth_method="none", force=True)
    texts = [numbered.text(reply) for reply in replies]
    score = scorer.corpus_score(texts, [[numbered.text(reference) for reference in references]]).score
    return min(float(score), 100.0)  # rounding in the exponential may leave it a hair above


def bleu_2_score(replies: Sequence[Words], references: Sequence[Words]) -> PooledScore:
    """The same number from sums over turns, which is what resampling needs.

    Columns: matched words, matched pairs, words, pairs of the reply; words of reply and reference.
    """
    rows = [_bleu_row(reply, reference) for reply, reference in zip(replies, references, strict=True)]
    return PooledScore(dense_rows(np.array(rows, dtype=np.float64).reshape(-1, 6).T.tolist()), _bleu_of_sums)


def rouge_2_score(
    replies: Sequence[Words], references: Sequence[Words], references_without_pairs: Literal["skip", "zero"] = "skip"
) -> PooledScore:
    """Mean ROUGE-2 recall by rouge-score. A reference of fewer than two words has no recall: skipped, or 0."""
    return mean_score(rouge_2_recalls(replies, references, references_without_pairs))


def rouge_2_recalls(
    replies: Sequence[Words], references: Sequence[Words], references_without_pairs: Literal["skip", "zero"] = "skip"
) -> list[float | None]:
    """ROUGE-2 recall of each turn, 0-1; None where the turn is skipped."""
    numbered = NumberedWords()
    scorer: Any = RougeScorer(["rouge2"], tokenizer=numbered)
    recalls: list[float | None] = []
    for reply, reference in zip(replies, references, strict=True):
        if len(reference) < 2:
            recalls.append(None if references_without_pairs == "skip" else 0.0)
        else:
            recalls.append(float(scorer.score(numbered.text(reference), numbered.text(reply))["rouge2"].recall))
    return recalls


def _bleu_row(reply: Words, reference: Words) -> tuple[int, ...]:
    pairs, reference_pairs = word_groups(reply, 2), word_groups(reference, 2)
    return (
        (Counter(reply) & Counter(reference)).total(),
        (Counter(pairs) & Counter(reference_pairs)).total(),
        len(reply),
        len(pairs),
        len(reply),
        len(reference),
    )


def _bleu_of_sums(sums: Floats) -> Floats:
    """[..., 6] to [...]: brevity penalty times the geometric mean of both precisions; 0 where a precision is 0."""
    matched, totals, lengths = sums[..., 0:2], sums[..., 2:4], sums[..., 4:6]
    precisions = matched / np.maximum(totals, 1)
    brevity = np.exp(np.minimum(0.0, 1 - lengths[..., 1] / np.maximum(lengths[..., 0], 1)))
    score: Floats = 100 * brevity * np.sqrt(precisions[..., 0] * precisions[..., 1])
    return score


def word_groups(words: Words, size: int) -> list[tuple[str, ...]]:
    """The n-grams of a text, in order."""
    return [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]
