"""Protocol `meddg`, as MedDG, DFMed and MedRef report: characters, sentence BLEU, entities by substring.

Its figures mean something else than those of protocol `vrbot`; its scorecard is another type with other keys, and no
table takes both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

from ahocorasick_rs import AhoCorasick, MatchKind
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from rouge_score.rouge_scorer import RougeScorer

from vrbot.errors import ConfigError
from vrbot.evaluation.entities import EntitySets, micro_entity_scores
from vrbot.evaluation.overlap import NumberedWords
from vrbot.evaluation.pooling import PooledScore, mean_score
from vrbot.evaluation.turns import ScoredTurn

BLEU_SIZES = (1, 2, 4)


@dataclass(frozen=True)
class Variant:
    """How one group computes sentence BLEU: weights of the four n-gram sizes, and replies too short to count."""

    weights: Mapping[int, tuple[float, float, float, float]]
    longest_worthless_reply: int  # replies of up to so many characters score 0


VARIANTS: Mapping[str, Variant] = {
    "meddg": Variant({1: (1, 0, 0, 0), 2: (0, 1, 0, 0), 4: (0, 0, 0, 1)}, 4),
    "dfmed": Variant({1: (1, 0, 0, 0), 2: (0.5, 0.5, 0, 0), 4: (0.25, 0.25, 0.25, 0.25)}, 1),
}


@dataclass(frozen=True)
class MedDGOptions:
    """Which group's sentence BLEU: `meddg` (individual n-gram sizes) or `dfmed` (cumulative, also MedRef)."""

    variant: Literal["meddg", "dfmed"] = "meddg"

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ConfigError(f"variant must be one of {', '.join(VARIANTS)}, got {self.variant!r}")

    def as_dict(self) -> dict[str, str]:
        return {"variant": self.variant}

    def stated(self) -> str:
        """The same as a sentence, to stand under a table."""
        kind = "individual n-gram sizes" if self.variant == "meddg" else "cumulative weights"
        shortest = VARIANTS[self.variant].longest_worthless_reply
        return f"characters; sentence BLEU with {kind}, nltk smoothing method 7, 0 for replies of up to {shortest}"


@dataclass(frozen=True)
class MedDGScorecard:
    """In percent; None where a metric does not apply. Method 7 can lift a BLEU above 100."""

    protocol: ClassVar[str] = "meddg"

    num_turns: int
    character_bleu_1: float | None
    character_bleu_2: float | None
    character_bleu_4: float | None
    character_rouge_1: float | None
    character_rouge_2: float | None
    substring_entity_precision: float | None
    substring_entity_recall: float | None
    substring_entity_f1: float | None
    options: MedDGOptions = field(default_factory=MedDGOptions)

    def as_dict(self) -> dict[str, Any]:
        """Flat keys, ready for JSON; none but `num_turns` is also a key of protocol `vrbot`."""
        return {**asdict(self), "protocol": self.protocol, "options": self.options.as_dict()}


class SubstringEntities:
    """Entities of a text by bare substring search for every surface: overlaps count, case counts."""

    def __init__(self, surfaces: Mapping[str, Iterable[int]]) -> None:
        kept = {_valid(surface): tuple(entities) for surface, entities in surfaces.items() if surface}
        self._entities = list(kept.values())
        self._automaton = AhoCorasick(list(kept), matchkind=MatchKind.Standard)

    def find(self, text: str) -> frozenset[int]:
        hits = self._automaton.find_matches_as_indexes(_valid(text), overlapping=True)
        return frozenset(entity for number, _, _ in hits for entity in self._entities[number])


def meddg_scorecard(
    turns: Sequence[ScoredTurn], surfaces: Mapping[str, Iterable[int]], options: MedDGOptions | None = None
) -> MedDGScorecard:
    """All metrics of protocol `meddg`; only the texts of the turns are read, and `surfaces` is the alias dictionary."""
    options = options or MedDGOptions()
    values = {name: score.value for name, score in measure_meddg(turns, surfaces, options).items()}
    return MedDGScorecard(num_turns=len(turns), options=options, **values)


def measure_meddg(
    turns: Sequence[ScoredTurn], surfaces: Mapping[str, Iterable[int]], options: MedDGOptions
) -> dict[str, PooledScore]:
    """Every metric of the protocol as a pooled score, which significance tests resample."""
    pairs = [(characters(turn.reply), characters(turn.reference)) for turn in turns]
    bleus = [sentence_bleus(reply, reference, VARIANTS[options.variant]) for reply, reference in pairs]
    rouges = _character_rouges(pairs)
    finder = SubstringEntities(surfaces)
    entities = micro_entity_scores([EntitySets(finder.find(turn.reply), finder.find(turn.reference)) for turn in turns])
    return {
        **{f"character_bleu_{size}": mean_score([bleu[size] for bleu in bleus]) for size in BLEU_SIZES},
        "character_rouge_1": mean_score([rouge[0] for rouge in rouges]),
        "character_rouge_2": mean_score([rouge[1] for rouge in rouges]),
        "substring_entity_precision": entities.precision,
        "substring_entity_recall": entities.recall,
        "substring_entity_f1": entities.f1,
    }


def characters(text: str) -> list[str]:
    """The characters of a text without blanks."""
    return [character for character in text if not character.isspace()]


def sentence_bleus(reply: Sequence[str], reference: Sequence[str], variant: Variant) -> dict[int, float]:
    """BLEU-1, -2, -4 of one reply, 0-1, by nltk; 0 for a reply too short to count."""
    if len(reply) <= variant.longest_worthless_reply:
        return dict.fromkeys(BLEU_SIZES, 0.0)
    smoothing: Any = SmoothingFunction().method7
    weights = [variant.weights[size] for size in BLEU_SIZES]
    scores = sentence_bleu([list(reference)], list(reply), weights, smoothing_function=smoothing)
    return dict(zip(BLEU_SIZES, map(float, scores), strict=True))


def _valid(text: str) -> str:
    """Half characters, which broken input may hold and no encoding can, as question marks."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _character_rouges(pairs: Sequence[tuple[list[str], list[str]]]) -> list[tuple[float, float]]:
    """ROUGE-1 and ROUGE-2 F of each turn, 0-1, by rouge-score."""
    numbered = NumberedWords()
    scorer: Any = RougeScorer(["rouge1", "rouge2"], tokenizer=numbered)
    scored = [scorer.score(numbered.text(reference), numbered.text(reply)) for reply, reference in pairs]
    return [(float(score["rouge1"].fmeasure), float(score["rouge2"].fmeasure)) for score in scored]
