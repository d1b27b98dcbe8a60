"""What simple rules score on simulated consultations, and what no model can beat.

The rules are there to show that neither the state nor the action can be read off by looking for names or counting
words; the ceiling is the agreement of the physician with itself when it decides a second time on the same chart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from vrbot.clinic.chart import Act, Chart
from vrbot.clinic.consultation import consult, language_of
from vrbot.clinic.patient import draw_disease, draw_patient
from vrbot.clinic.physician import Physician, Style
from vrbot.clinic.simulate import SimulationSettings, assign_splits, simulate_sessions
from vrbot.clinic.wording import DIFFICULTIES
from vrbot.clinic.world import World, load_world
from vrbot.dialogue.session import Session, Turn
from vrbot.knowledge.linking import Linker

NUM_KEYWORDS = 2
"""How many keywords the counting rules give; about as many as a physician does."""

NameSet = set[str]
Rule = Callable[[Sequence[Turn]], NameSet]
"""From the turns up to the patient's latest words (its labels are not looked at) to keywords."""


@dataclass
class Overlap:
    """Counts behind a micro-averaged F1."""

    right: int = 0
    given: int = 0
    true: int = 0

    def add(self, given: Iterable[str], true: Iterable[str]) -> None:
        """Count one turn."""
        given_set, true_set = set(given), set(true)
        self.right += len(given_set & true_set)
        self.given += len(given_set)
        self.true += len(true_set)

    @property
    def f1(self) -> float:
        """In percent."""
        return 200.0 * self.right / max(1, self.given + self.true)


class NameFinder:
    """Finds the world's entities in text by their names and other names."""

    def __init__(self, world: World, language: str) -> None:
        self.names = [entity.name(language) for entity in world.entities.values()]
        numbers = {name: number for number, name in enumerate(self.names)}
        lexicon = world.lexicon(language)
        surfaces = {form: tuple(numbers[name] for name in names) for form, names in lexicon.items()}
        self.linker = Linker(surfaces)

    def find(self, text: str) -> list[str]:
        """Canonical names in order of mention."""
        return [self.names[number] for mention in self.linker.find(text) for number in mention.entities]


def string_matching_f1(sessions: Iterable[Session], finder: NameFinder, *, both_sides: bool) -> float:
    """State F1 of a tracker that copies every entity named so far, by the patient alone or by both."""
    overlap = Overlap()
    for session in sessions:
        seen: list[str] = []
        for position, turn in enumerate(session.turns):
            if both_sides and position:
                seen += finder.find(session.turns[position - 1].physician)
            seen += finder.find(turn.patient)
            overlap.add(seen, turn.state or ())
    return overlap.f1


def keyword_f1(sessions: Iterable[Session], rule: Rule) -> float:
    """Action keyword F1 of a rule."""
    overlap = Overlap()
    for session in sessions:
        for position, turn in enumerate(session.turns):
            true = turn.action.keywords if turn.action is not None else None
            overlap.add(rule(session.turns[: position + 1]), true or ())
    return overlap.f1


def most_frequent_rule(training: Iterable[Session]) -> Rule:
    """The keywords most frequent in training, always."""
    counts: Counter[str] = Counter()
    for session in training:
        for turn in session.turns:
            counts.update(_keywords(turn))
    best = {name for name, _ in counts.most_common(NUM_KEYWORDS)}
    return lambda turns: best


def next_keyword_rule(training: Iterable[Session], finder: NameFinder) -> Rule:
    """The keywords that most often followed the entity mentioned last."""
    followers: dict[str, Counter[str]] = defaultdict(Counter)
    for session in training:
        for position, turn in enumerate(session.turns):
            last = _last_mention(session.turns[: position + 1], finder)
            followers[last].update(_keywords(turn))
    best = {last: {name for name, _ in counts.most_common(NUM_KEYWORDS)} for last, counts in followers.items()}
    return lambda turns: best.get(_last_mention(turns, finder), set())


def likeliest_disease_rule(world: World, language: str, finder: NameFinder) -> Rule:
    """Unmentioned symptoms of the disease that shares most symptoms with what has been mentioned."""
    symptoms = {
        disease.id: [world.name(symptom, language) for symptom in disease.typical + disease.occasional]
        for disease in world.diseases.values()
    }

    def rule(turns: Sequence[Turn]) -> NameSet:
        seen = set(_mentions(turns, finder))
        disease = max(symptoms, key=lambda one: len(seen & set(symptoms[one])))
        return set([name for name in symptoms[disease] if name not in seen][:NUM_KEYWORDS])

    return rule


def stage_rule(world: World, language: str, finder: NameFinder) -> Rule:
    """Symptoms of the likeliest disease until the physician names a disease, then its medicines, then its causes."""
    by_symptoms = likeliest_disease_rule(world, language, finder)
    diseases = {world.name(disease.id, language): disease for disease in world.diseases.values()}

    def rule(turns: Sequence[Turn]) -> NameSet:
        by_physician = [name for turn in turns[:-1] for name in finder.find(turn.physician)]
        named = [diseases[name] for name in by_physician if name in diseases]
        if not named:
            return by_symptoms(turns)
        medicines = [world.name(medicine, language) for medicine in named[-1].medicines]
        causes = [world.name(cause, language) for cause in named[-1].causes]
        prescribed = set(medicines) & set(by_physician)
        return set((causes if prescribed else medicines)[:NUM_KEYWORDS])

    return rule


def category_accuracy_after_previous(training: Iterable[Session], sessions: Iterable[Session]) -> float:
    """Accuracy, in percent, of the category that most often followed the true previous one in training."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for session in training:
        for previous, turn in _with_previous(session):
            counts[previous][_category(turn)] += 1
    pairs = [pair for session in sessions for pair in _with_previous(session)]
    right = sum(counts[previous].most_common(1)[0][0] == _category(turn) for previous, turn in pairs)
    return 100.0 * right / len(pairs)


def category_accuracy_by_position(training: Iterable[Session], sessions: Iterable[Session]) -> float:
    """Accuracy, in percent, of the category most frequent at the same turn of training dialogues."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for session in training:
        for position, turn in enumerate(session.turns):
            counts[position][_category(turn)] += 1
    best = {position: count.most_common(1)[0][0] for position, count in counts.items()}
    turns = [(position, turn) for session in sessions for position, turn in enumerate(session.turns)]
    return 100.0 * sum(best.get(position) == _category(turn) for position, turn in turns) / len(turns)


@dataclass(frozen=True)
class Ceiling:
    """How far the physician agrees with a second decision of its own on the same chart, in percent."""

    keyword_f1: float
    category_accuracy: float
    turns: int


def physician_ceiling(settings: SimulationSettings) -> Ceiling:
    """Draw every act of the simulated consultations a second time, independently."""
    world = load_world()
    physician, language = Physician(world), language_of(settings.language)
    overlap, same, turns = Overlap(), 0, 0
    for number in range(settings.dialogues):
        rng, second = Random(f"{settings.seed}/{number}"), Random(f"{settings.seed}/{number}/again")

        def compare(chart: Chart, style: Style, act: Act, second: Random = second) -> None:
            nonlocal same, turns
            again = physician.decide(chart, style, second)
            overlap.add(again.entities, act.entities)
            same += again.category == act.category
            turns += 1

        patient = draw_patient(world, draw_disease(world, tuple(world.departments), rng), rng)
        consult(physician, patient, language, DIFFICULTIES[settings.difficulty], rng, compare)
    return Ceiling(overlap.f1, 100.0 * same / turns, turns)


@dataclass(frozen=True)
class ReferenceScores:
    """What simple rules score on the valid and test dialogues of a simulation, and the physician's own ceiling."""

    dialogues: int
    state_f1: dict[str, float]
    keyword_f1: dict[str, float]
    category_accuracy: dict[str, float]


def reference_scores(settings: SimulationSettings) -> ReferenceScores:
    """Simulate, let every rule learn on the training dialogues, and score it on the others; in percent."""
    splits = assign_splits(list(simulate_sessions(settings)), settings)
    training, scored = splits["train"], splits["valid"] + splits["test"]
    world, language = load_world(), settings.language
    finder, ceiling = NameFinder(world, language), physician_ceiling(settings)
    rules = {
        "most frequent keywords": most_frequent_rule(training),
        "what followed the last mention": next_keyword_rule(training, finder),
        "symptoms of the likeliest disease": likeliest_disease_rule(world, language, finder),
        "the same by stage": stage_rule(world, language, finder),
    }
    return ReferenceScores(
        dialogues=len(scored),
        state_f1={
            "names the patient says": string_matching_f1(scored, finder, both_sides=False),
            "names either side says": string_matching_f1(scored, finder, both_sides=True),
        },
        keyword_f1={
            **{name: keyword_f1(scored, rule) for name, rule in rules.items()},
            "the physician again": ceiling.keyword_f1,
        },
        category_accuracy={
            "most frequent at this turn": category_accuracy_by_position(training, scored),
            "what followed the last category": category_accuracy_after_previous(training, scored),
            "the physician again": ceiling.category_accuracy,
        },
    )


def _keywords(turn: Turn) -> tuple[str, ...]:
    return (turn.action.keywords or ()) if turn.action is not None else ()


def _category(turn: Turn) -> str:
    return (turn.action.category or "") if turn.action is not None else ""


def _with_previous(session: Session) -> list[tuple[str, Turn]]:
    previous = ["", *(_category(turn) for turn in session.turns)]
    return list(zip(previous, session.turns, strict=False))


def _mentions(turns: Sequence[Turn], finder: NameFinder) -> list[str]:
    """Everything named up to the patient's latest words."""
    seen: list[str] = []
    for position, turn in enumerate(turns):
        if position:
            seen += finder.find(turns[position - 1].physician)
        seen += finder.find(turn.patient)
    return seen


def _last_mention(turns: Sequence[Turn], finder: NameFinder) -> str:
    for position in range(len(turns) - 1, -1, -1):
        found = finder.find(turns[position].patient)
        if not found and position:
            found = finder.find(turns[position - 1].physician)
        if found:
            return found[-1]
    return ""
