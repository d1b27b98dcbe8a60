"""What passes between the two sides of a consultation: the chart, the patient's questions, the physician's acts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Question:
    """What the patient wants to know; `subject` is a disease or a medicine where there is one."""

    kind: str
    subject: str = ""


@dataclass
class Chart:
    """Everything that has been said so far. `known` is the patient's state, in order of becoming known."""

    age: int
    sex: str
    known: list[str] = field(default_factory=list)
    denied: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    conditions: set[str] = field(default_factory=set)
    results: dict[str, bool] = field(default_factory=dict)  # test -> whether it found something
    tests_ordered: tuple[str, ...] = ()
    allergy: str | None = None  # a kind of medicine
    allergy_settled: bool = False
    medicines_settled: bool = False
    circumstances_settled: bool = False
    diagnosis: str = ""
    prescribed: list[str] = field(default_factory=list)
    question: Question | None = None
    report: str = ""  # "better", "worse" or "side_effect" when the patient has come back with news
    side_effect: str = ""
    advised: bool = False
    leaving: bool = False
    num_questions: int = 0
    num_turns: int = 0

    def learn(self, *entities: str) -> None:
        """Put these into the state."""
        self.known.extend(entity for entity in dict.fromkeys(entities) if entity not in self.known)


@dataclass(frozen=True)
class Act:
    """What the physician does. Every entity in `slots` is named in the reply; `kind` is the rule that words it."""

    kind: str
    category: str
    slots: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def entities(self) -> frozenset[str]:
        return frozenset(entity for entities in self.slots.values() for entity in entities)


def record(act: Act, chart: Chart) -> None:
    """What the act changes on the chart; a diagnosis told is known from the patient's next words on."""
    chart.num_turns += 1
    chart.question, chart.report = None, ""
    slots = act.slots
    if act.category == "ask_symptoms":
        chart.num_questions += 1
        chart.asked |= act.entities
        chart.circumstances_settled |= act.kind in ("d_circumstance", "d_history")
        chart.medicines_settled |= act.kind == "d_ask_medicine"
    if act.kind.startswith("d_test"):
        chart.tests_ordered = slots["tests"]
    if act.kind.startswith(("d_diagnose", "d_urgent")):
        chart.diagnosis = slots["disease"][0]
        chart.learn(chart.diagnosis)
    if act.kind == "d_replace_adverse":
        chart.prescribed.remove(slots["old"][0])
    if "medicines" in slots:
        chart.prescribed += [medicine for medicine in slots["medicines"] if medicine not in chart.prescribed]
    chart.advised |= act.kind.startswith("d_advice")
