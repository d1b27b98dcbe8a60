"""Each metric once more, as its definition reads, with loops and no library: what the fast versions must equal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

Words = Sequence[str]
Sets = Sequence[tuple[frozenset[int], frozenset[int]]]
"""(predicted, gold) of each turn."""


def ngrams(words: Words, size: int) -> list[tuple[str, ...]]:
    return list(zip(*(words[start:] for start in range(size)), strict=False))


def matches(reply: Words, reference: Words, size: int) -> int:
    left = Counter(ngrams(reference, size))
    found = 0
    for group in ngrams(reply, size):
        if left[group] > 0:
            left[group] -= 1
            found += 1
    return found


def bleu_2(replies: Sequence[Words], references: Sequence[Words]) -> float:
    log_precisions = 0.0
    for size in (1, 2):
        total = sum(len(ngrams(reply, size)) for reply in replies)
        matched = sum(matches(reply, reference, size) for reply, reference in zip(replies, references, strict=True))
        if matched == 0:
            return 0.0
        log_precisions += math.log(matched / total) / 2
    reply_length, reference_length = sum(map(len, replies)), sum(map(len, references))
    penalty = 1.0 if reply_length >= reference_length else math.exp(1 - reference_length / reply_length)
    return 100 * penalty * math.exp(log_precisions)


def rouge_2(replies: Sequence[Words], references: Sequence[Words]) -> float | None:
    recalls = [
        matches(reply, reference, 2) / (len(reference) - 1)
        for reply, reference in zip(replies, references, strict=True)
        if len(reference) > 1
    ]
    return 100 * sum(recalls) / len(recalls) if recalls else None


def rouge_f(reply: Words, reference: Words, size: int) -> float:
    matched = matches(reply, reference, size)
    return f1(matched, len(ngrams(reply, size)), len(ngrams(reference, size)))


def f1(matched: int, predicted: int, gold: int) -> float:
    precision = matched / predicted if predicted else 0.0
    recall = matched / gold if gold else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def micro_f1(sets: Sets) -> float | None:
    hits = predictions = golds = 0
    for predicted, gold in sets:
        for entity in predicted:
            predictions += 1
            hits += entity in gold
        golds += len(gold)
    return 100 * f1(hits, predictions, golds) if predictions + golds else None


def macro(sets: Sets, minimum_gold_count: int) -> tuple[float | None, float | None, float | None]:
    scores = []
    for entity in range(100):
        gold_turns = {turn for turn, (_, gold) in enumerate(sets) if entity in gold}
        predicted_turns = {turn for turn, (predicted, _) in enumerate(sets) if entity in predicted}
        if len(gold_turns) >= minimum_gold_count and gold_turns:
            hits = len(gold_turns & predicted_turns)
            precision = hits / len(predicted_turns) if predicted_turns else 0.0
            scores.append((precision, hits / len(gold_turns), f1(hits, len(predicted_turns), len(gold_turns))))
    if not scores:
        return None, None, None
    precision, recall, f_one = (100 * sum(part) / len(scores) for part in zip(*scores, strict=True))
    return precision, recall, f_one


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    lengths = math.sqrt(sum(a * a for a in one)) * math.sqrt(sum(b * b for b in other))
    return product / lengths if lengths else 0.0


def average_similarity(vectors: Sequence[Sequence[float]], predicted: frozenset[int], gold: frozenset[int]) -> float:
    if predicted == gold:
        return 1.0
    means = []
    for members in (predicted, gold):
        chosen = [vectors[entity] for entity in members]
        means.append([sum(numbers) / len(chosen) for numbers in zip(*chosen, strict=True)])
    return cosine(means[0], means[1])


def greedy_similarity(vectors: Sequence[Sequence[float]], predicted: frozenset[int], gold: frozenset[int]) -> float:
    def similarity(one: int, other: int) -> float:
        return 1.0 if one == other else cosine(vectors[one], vectors[other])

    def one_way(members: frozenset[int], others: frozenset[int]) -> float:
        return sum(max(similarity(member, other) for other in others) for member in members) / len(members)

    return (one_way(predicted, gold) + one_way(gold, predicted)) / 2


def cooccurrences(sentences: Sequence[Words], words: Words, window: int) -> list[list[int]]:
    table = [[0] * len(words) for _ in words]
    for sentence in sentences:
        for place, word in enumerate(sentence):
            for other_place, other in enumerate(sentence):
                near = 0 < abs(place - other_place) <= window
                if near and word in words and other in words:
                    table[words.index(word)][words.index(other)] += 1
    return table


def holm(p_values: Sequence[float]) -> list[float]:
    """For each hypothesis the smallest level at which the step-down procedure would still reject it."""
    adjusted = []
    for p_value in p_values:
        before = [other for other in p_values if other <= p_value]
        ranked = sorted(p_values)
        candidates = [(len(p_values) - rank) * other for rank, other in enumerate(ranked) if rank < len(before)]
        adjusted.append(min(1.0, max(candidates)))
    return adjusted
