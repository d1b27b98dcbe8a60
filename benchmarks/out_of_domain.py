"""Does a guard keep a model from answering what is none of its business?

    python -m benchmarks.out_of_domain RUN [--corpus FOLDER] [--guard FILE] [--count 1000] [--json FILE]

First utterances of thirteen kinds, drawn from patterns of our own, in the model's language: errands, small talk, other
languages, nonsense, and two hard kinds (words of illness in another sense; ills of animals, plants and machines). For
each kind the share that abstains and the reasons, and beside it the share of the corpus' own test turns that abstain,
wrongly. Without `--guard` one is fitted on the validation split. `--tuning` draws from the patterns to work with.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import out_of_domain_en, out_of_domain_zh
from vrbot.agent.replies import batches_of
from vrbot.dialogue.batching import limits_of
from vrbot.dialogue.splits import Split, no_labels
from vrbot.explain.abstention import Guard, Judgement, fit_guard
from vrbot.explain.explainer import Explainer

TEXTS = {"zh": out_of_domain_zh, "en": out_of_domain_en}
BY_TEXT = {"unknown words", "out of domain"}
"""The reasons that look at what was said and not at what the model makes of it."""

KEYBOARD = "qwertyuiopasdfghjklzxcvbnm"
COMMON_CHARACTERS = (0x4E00, 0x6FFF)
SIGNS = "?!。…~*#@%&()[]{}<>/\\|+-=;:"
PICTURES = "😀😂🤖🚗🍕⚽🎸🌧️✈️📦"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--corpus", type=Path, help="where the run's corpus is now")
    parser.add_argument("--guard", type=Path, help="a guard that was written before [fitted on the validation split]")
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tuning", action="store_true", help="the patterns to work with, not those to report")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args(arguments)
    explainer = Explainer.from_pretrained(args.run, corpus=args.corpus)
    corpus, limits = explainer.agent.pretrained.corpus, limits_of(explainer.agent.config.network)
    guard = Guard.load(args.guard) if args.guard else fit_guard(explainer.model, corpus.split("valid"), limits)
    which = "tuning" if args.tuning else "reported"
    drawn = draw(explainer.agent.language, which, args.count, np.random.default_rng(args.seed))
    text = json.dumps({"patterns": which, **measure(explainer, guard, drawn)}, indent=2, ensure_ascii=False)
    if args.json is not None:
        args.json.write_text(text + "\n", encoding="utf-8")
    print(text)


def measure(explainer: Explainer, guard: Guard, drawn: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Shares that abstain: of each kind of foreign text, of all of them, and of the corpus' own test turns."""
    corpus = explainer.agent.pretrained.corpus
    strange = Split(
        session_ids=tuple(map(str, range(len(drawn)))),
        session_offsets=np.arange(len(drawn) + 1, dtype=np.int64),
        texts=corpus.encoder.encode([text for _, patient in drawn for text in (patient, "")]),
        labels=no_labels(len(drawn)),
    )
    judged = [judgement for _, judgement in judgements(explainer, guard, strange)]
    kinds = {kind: [each for (of, _), each in zip(drawn, judged, strict=True) if of == kind] for kind, _ in drawn}
    answered = [text for (_, text), each in zip(drawn, judged, strict=True) if not each.reasons]
    own = list(judgements(explainer, guard, corpus.split("test")))
    return {
        "out_of_domain": {kind: shares(found) for kind, found in kinds.items()} | {"all": shares(judged)},
        "own_test_turns": {
            "first": shares([each for turn, each in own if turn == 0]),
            "all": shares([each for _, each in own]),
        },
        "answered_all_the_same": answered[:50],
    }


@torch.no_grad()
def judgements(explainer: Explainer, guard: Guard, split: Split) -> Iterator[tuple[int, Judgement]]:
    """The number of each turn in its dialogue, and what the guard says of it; dialogues in their order."""
    explainer.model.eval()
    places = {name: place for place, name in enumerate(split.session_ids)}
    found: dict[tuple[int, int], Judgement] = {}
    for batch in batches_of(split, limits_of(explainer.agent.config.network)):
        perception = explainer.model.perceive(batch.inputs, batch.layout)
        judged = guard.judge_all(explainer.model, batch, perception)
        sessions = [places[batch.session_ids[number]] for number in batch.session.tolist()]
        found |= dict(zip(zip(sessions, batch.turn.tolist(), strict=True), judged, strict=True))
    return ((turn, found[session, turn]) for session, turn in sorted(found))


def shares(judged: Sequence[Judgement]) -> dict[str, Any]:
    """How many there are, the share that abstains, by the text alone, and by each reason; reasons overlap."""
    reasons = Counter(reason for each in judged for reason in each.reasons)
    return {
        "texts": len(judged),
        "abstain": _share(sum(bool(each.reasons) for each in judged), len(judged)),
        "by_text": _share(sum(bool(BY_TEXT & {*each.reasons}) for each in judged), len(judged)),
        **{reason: _share(count, len(judged)) for reason, count in reasons.most_common()},
    }


def draw(language: str, which: str, count: int, random: np.random.Generator) -> list[tuple[str, str]]:
    """Distinct texts with their kinds, as many of one kind as of another as far as they go round."""
    source = TEXTS[language]
    patterns = source.REPORTED if which == "reported" else source.TUNING
    kinds = [*patterns, "other_languages", "nonsense"]
    room = np.full(len(kinds), count // len(kinds)) + (np.arange(len(kinds)) < count % len(kinds))
    drawn: list[tuple[str, str]] = []
    for kind, wanted in zip(kinds, room.tolist(), strict=True):
        if kind == "nonsense":
            texts = list(dict.fromkeys(nonsense(random) for _ in range(2 * wanted)))[:wanted]
        else:
            texts = _evenly(patterns.get(kind) or source.FOREIGN[which], wanted, random)
        drawn += [(kind, text) for text in texts]
    return drawn


def variants(pattern: str) -> list[str]:
    """Every sentence of a pattern."""
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [part.split("|") if number % 2 else [part] for number, part in enumerate(parts)]
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def nonsense(random: np.random.Generator) -> str:
    """Keys struck at random, characters that say nothing together, one of them over and over, numbers, signs."""
    length = int(random.integers(4, 25))
    kind = int(random.integers(5))
    if kind == 1:
        return "".join(map(chr, random.integers(*COMMON_CHARACTERS, length)))
    if kind == 2:
        return chr(int(random.integers(*COMMON_CHARACTERS))) * length
    alphabet = {0: KEYBOARD, 3: string.digits, 4: SIGNS + PICTURES}[kind]
    return "".join(random.choice(list(alphabet), length))


def _evenly(patterns: Sequence[str], wanted: int, random: np.random.Generator) -> list[str]:
    """One variant of each pattern in turn, none twice, until there are enough or no more."""
    shuffled = [random.permutation(variants(pattern)).tolist() for pattern in patterns]
    in_turn = (text for texts in itertools.zip_longest(*shuffled) for text in texts if text is not None)
    return list(itertools.islice(dict.fromkeys(in_turn), wanted))


def _share(part: int, whole: int) -> float:
    return round(part / max(whole, 1), 4)


if __name__ == "__main__":
    main()
