"""One simulated consultation, turn by turn, with the true state and action of every turn."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from vrbot.clinic.chart import Act, Chart, record
from vrbot.clinic.chinese import Chinese
from vrbot.clinic.english import English
from vrbot.clinic.grammar import fill, slots_of
from vrbot.clinic.patient import Patient
from vrbot.clinic.physician import STYLES, Physician, Style
from vrbot.clinic.speaker import MAX_TURNS, Speaker
from vrbot.clinic.wording import Difficulty, Language
from vrbot.clinic.world import World
from vrbot.dialogue.session import Action, Turn

ATTEMPTS_AT_A_NEW_WORDING = 3
Observer = Callable[[Chart, Style, Act], None]
"""Sees the chart before each act of the physician; used to measure how predictable the acts are."""


def language_of(code: str) -> Language:
    """The wording of this language."""
    return Chinese() if code == "zh" else English()


def consult(
    physician: Physician,
    patient: Patient,
    language: Language,
    difficulty: Difficulty,
    rng: Random,
    observe: Observer | None = None,
) -> tuple[Turn, ...]:
    """The whole conversation of this patient with a physician of a random style."""
    chart = Chart(patient.age, patient.sex)
    speaker = Speaker(physician.world, language, patient, difficulty, chart, rng)
    style = rng.choice(STYLES)
    turns: list[Turn] = []
    used: set[str] = set()
    said = speaker.opening()
    while True:
        state = tuple(physician.world.name(entity, language.code) for entity in chart.known)
        act = physician.decide(chart, style, rng)
        if observe is not None:
            observe(chart, style, act)
        response, keywords = word_act(act, physician.world, language, style, patient, used, rng)
        named = tuple(physician.world.name(entity, language.code) for entity in keywords)
        turns.append(Turn(said, response, state, Action(act.category, named)))
        record(act, chart)
        if chart.leaving or len(turns) == MAX_TURNS:
            return tuple(turns)
        said = speaker.reply(act)


def word_act(
    act: Act, world: World, language: Language, style: Style, patient: Patient, used: set[str], rng: Random
) -> tuple[str, tuple[str, ...]]:
    """The physician's reply and the entities it names, in the order of the words; `used` wordings are avoided."""
    greeting = "" if used or act.kind == "d_wait" else language.grammar.expand("greet", rng, style.name)
    template = language.grammar.expand(act.kind, rng, style.name)
    for _ in range(ATTEMPTS_AT_A_NEW_WORDING):
        if template in used:
            template = language.grammar.expand(act.kind, rng, style.name)
    used.add(template)
    template = greeting + template
    content: dict[str, str] = {}
    keywords: list[str] = []
    for slot in slots_of(template):
        if slot == "usage":
            content[slot] = _usage(act, world, language, rng)
            continue
        entities = act.slots[slot.removeprefix("any_")]
        keywords += [entity for entity in entities if entity not in keywords]
        content[slot] = language.listing(slot, [world.entities[one] for one in entities], style.other_name, rng)
    person = "you" if patient.relation is None else "he" if patient.sex == "male" else "she"
    return language.finish(fill(template, content), person), tuple(keywords)


def _usage(act: Act, world: World, language: Language, rng: Random) -> str:
    medicines = act.slots.get("medicines", ()) or act.slots.get("medicine", ())
    forms = {world.medicines[medicine].form for medicine in medicines}
    return language.grammar.expand(f"usage_{forms.pop()}" if len(forms) == 1 else "usage_mixed", rng)
