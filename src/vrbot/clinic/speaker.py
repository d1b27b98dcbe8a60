"""The patient's side of the consultation: how the patient opens, answers, asks back, returns with news and leaves."""

from __future__ import annotations

from random import Random

from vrbot.clinic.chart import Act, Chart, Question
from vrbot.clinic.disclosure import Disclosure
from vrbot.clinic.grammar import fill
from vrbot.clinic.patient import Patient
from vrbot.clinic.wording import Difficulty, Language
from vrbot.clinic.world import World

MIN_TURNS, MAX_TURNS = 6, 14
LAST_TURN = MAX_TURNS - 1
AFTER_DIAGNOSIS = ("ask_serious", "ask_cause", "ask_contagious", "ask_worry")
AFTER_PRESCRIPTION = ("ask_side_effects", "ask_usage", "ask_diet", "ask_review", "ask_medicine", "ask_serious")


class Speaker:
    """One patient, or the relative who writes for them, in one consultation."""

    def __init__(
        self, world: World, language: Language, patient: Patient, difficulty: Difficulty, chart: Chart, rng: Random
    ) -> None:
        self.world, self.language, self.patient = world, language, patient
        self.difficulty, self.chart, self.rng = difficulty, chart, rng
        self.tell = Disclosure(world, language, patient, difficulty, chart, rng)
        self.curiosity, self.comes_back = patient.curiosity, patient.comes_back
        self.questions_asked: set[str] = set()

    def opening(self) -> str:
        """Who it is about and what is wrong."""
        tell, rng = self.tell, self.rng
        parts = [tell.phrase("hello") if rng.random() < 0.6 else ""]
        introduction = self._introduction()
        complaints = tell.unsaid_symptoms()[: rng.choice((1, 2, 2, 3))]
        rng.shuffle(complaints)
        duration = self.language.duration(self.patient.days, rng)
        draw = rng.random()
        head = fill(tell.phrase("since_head"), {"days": duration}) if draw < 0.3 else ""
        told = tell.symptoms(complaints)
        close = 0.3 <= draw < 0.65 and self.language.lasts(told, [tell.entity(one) for one in complaints])
        if close:
            told += fill(tell.phrase("since_close"), {"days": duration})
        parts.append(self.language.begin(introduction, head, told))
        if 0.3 <= draw < 0.75 and not close:
            parts.append(fill(tell.phrase("since"), {"days": duration}))
        extras = [extra for extra in (self._background(), self._self_treatment(), *self._distractions()) if extra]
        rng.shuffle(extras)
        parts += extras
        if rng.random() < 0.65:
            parts.append(tell.phrase("open_ask"))
        return self._utter(parts)

    def reply(self, act: Act) -> str:
        """The patient's answer to what the physician just did."""
        tell, chart = self.tell, self.chart
        if chart.num_turns >= LAST_TURN:
            return self._goodbye()
        if act.kind == "d_wait":
            return self._utter([tell.symptoms(tell.unsaid_symptoms()[:2]) or tell.phrase("patient_chat")])
        if act.kind in ("d_ask", "d_question", "d_circumstance", "d_history"):
            return self._utter(self._answer([entity for asked in act.slots.values() for entity in asked]))
        if act.kind == "d_ask_medicine":
            return self._utter(self._medicines_so_far())
        if act.kind.startswith("d_allergy"):
            return self._utter(self._allergies())
        if act.kind.startswith("d_test"):
            return self._utter(self._test_results(act.slots["tests"]))
        if not chart.diagnosis:
            return self._utter([tell.phrase("fine"), self._volunteered() or tell.phrase("patient_chat")])
        return self._after_treatment() if chart.prescribed else self._before_treatment(act)

    def _utter(self, parts: list[str]) -> str:
        """The finished utterance, sometimes with a slip of the keyboard."""
        person = "I" if self.patient.relation is None else "he" if self.patient.sex == "male" else "she"
        text = self.language.finish(self.language.join([part for part in parts if part], self.rng), person)
        return self.language.slip(text, self.rng) if self.rng.random() < self.difficulty.typo else text

    # -- pieces of the opening

    def _introduction(self) -> str:
        content = {"age": str(self.patient.age), "sex": self.language.sex(self.patient.sex)}
        if self.patient.relation is None:
            return fill(self.tell.phrase("intro_self"), content)
        who = self.language.relative(self.patient.relation, self.rng)
        return fill(self.tell.phrase("intro_proxy"), {**content, "who": who})

    def _background(self) -> str:
        patient, rng = self.patient, self.rng
        if patient.tested and rng.random() < 0.6:
            found = patient.tested[0] in self.world.diseases[patient.disease].confirming
            return self.tell.test_result(patient.tested[0], "had_test", found)
        if patient.conditions and rng.random() < 0.6:
            return self.tell.condition(patient.conditions[0])
        if patient.circumstances and rng.random() < 0.3:
            return self.tell.circumstance(patient.circumstances[0])
        return ""

    def _self_treatment(self) -> str:
        return self.tell.taken(self.patient.taken[0]) if self.patient.taken and self.rng.random() < 0.6 else ""

    def _distractions(self) -> list[str]:
        said = []
        if self.rng.random() < self.difficulty.denial:
            said.append(self.tell.denial())
        if self.rng.random() < self.difficulty.third_person:
            said.append(self.tell.someone_else())
        if self.rng.random() < self.difficulty.distraction:
            said.append(self.tell.medicine_not_taken())
        return said

    # -- answers

    def _answer(self, asked: list[str]) -> list[str]:
        tell, rng = self.tell, self.rng
        present = [entity for entity in asked if self._has(entity)]
        unsure = [one for one in asked if one not in present and rng.random() < self.difficulty.unsure]
        absent = [one for one in asked if one not in present and one not in unsure]
        self.chart.conditions.update(entity for entity in present if entity in self.world.diseases)
        self.chart.denied.update(absent)
        if not unsure and rng.random() < self.difficulty.short_answer:
            parts = [self._short_answer(asked, present)]
        elif len(asked) == 1 and unsure:
            parts = [tell.phrase("unsure_short")]
        else:
            parts = self._long_answer(present, absent, unsure)
        self.chart.learn(*present)
        if rng.random() < 0.3:
            parts.append(self._volunteered())
        if rng.random() < self.difficulty.third_person / 2:
            parts.append(tell.someone_else())
        if rng.random() < self.difficulty.distraction / 2:
            parts.append(self._ask("ask_worry"))
        return parts

    def _has(self, entity: str) -> bool:
        conditions = {condition.disease for condition in self.patient.conditions}
        patient = self.patient
        symptom = entity in patient.symptoms or entity in patient.implied_symptoms
        return symptom or entity in patient.circumstances or entity in conditions

    def _short_answer(self, asked: list[str], present: list[str]) -> str:
        """An answer that makes sense only after its question."""
        if len(present) in (0, len(asked)):
            return self.tell.phrase(("yes" if present else "no") + ("", "", "_both", "_all")[len(asked)])
        single = present[0] if len(present) == 1 else next(one for one in asked if one not in present)
        position = self.language.position(asked.index(single), len(asked))
        return fill(self.tell.phrase("only" if len(present) == 1 else "except"), {"which": position})

    def _long_answer(self, present: list[str], absent: list[str], unsure: list[str]) -> list[str]:
        tell = self.tell
        parts = []
        if present:
            lead = tell.phrase("yes") if self.rng.random() < 0.4 else ""
            parts += [lead, self._description(present)]
        if absent:
            nameable = [tell.entity(entity) for entity in absent if tell.entity(entity).kind != "attribute"]
            parts.append(self.language.absent(nameable, self.rng) if nameable else tell.phrase("no"))
        parts += [tell.named("unsure", entity) for entity in unsure]
        return parts

    def _description(self, present: list[str]) -> str:
        kind = self.tell.entity(present[0]).kind
        if kind == "attribute":
            return self.tell.circumstance(present[0])
        if kind == "disease":
            return self.tell.named("condition_alone", present[0])
        return self.tell.symptoms(present)

    def _volunteered(self) -> str:
        tell = self.tell
        unmentioned = [one for one in self.patient.conditions if one.disease not in self.chart.known]
        if unmentioned and self.rng.random() < 0.3:
            return tell.phrase("more") + tell.condition(unmentioned[0])
        unsaid = tell.unsaid_symptoms()[:1]
        return tell.phrase("more") + tell.symptoms(unsaid) if unsaid else ""

    def _medicines_so_far(self) -> list[str]:
        told = [self.tell.taken(medicine) for medicine in self.patient.taken]
        told += [self.tell.condition(one) for one in self.patient.conditions if one.disease not in self.chart.known]
        return told or [self.tell.phrase("no_medicine")]

    def _allergies(self) -> list[str]:
        self.chart.allergy_settled = True
        said = [self.tell.allergy("allergy_yes") if self.patient.allergy else self.tell.phrase("allergy_no")]
        return [*said, self.tell.pregnancy()] if self.patient.pregnant else said

    def _test_results(self, tests: tuple[str, ...]) -> list[str]:
        if self.rng.random() < 0.25:
            return [self.tell.phrase("test_refused")]
        confirming = self.world.diseases[self.patient.disease].confirming
        parts = []
        for test in tests:
            found = test in confirming and self.rng.random() < 0.9
            short = len(tests) == 1 and self.rng.random() < self.difficulty.short_answer
            rule = "result_short" if short else "result_found" if found else "result_normal"
            parts.append(self.tell.test_result(test, rule, found))
        return parts

    # -- once the diagnosis is known

    def _before_treatment(self, act: Act) -> str:
        told = act.kind.startswith(("d_diagnose", "d_urgent"))
        if told and self.chart.num_turns < LAST_TURN - 3 and self.rng.random() < 0.4:
            return self._asking(self.rng.choice(AFTER_DIAGNOSIS))
        if not told and self.chart.advised:  # there is no medicine this patient may take
            return self._asking("ask_diet") if self.chart.num_turns < MIN_TURNS - 1 else self._goodbye()
        return self._utter([self._lead() + self.tell.phrase("ask_treat")])

    def _after_treatment(self) -> str:
        chart = self.chart
        conflict = any(self.world.medicines[one].kind == self.patient.allergy for one in chart.prescribed)
        if conflict and not chart.allergy_settled:
            chart.question = Question("object_allergy")
            said = self._utter([self.tell.allergy("object_allergy")])
            chart.prescribed = [one for one in chart.prescribed if self.world.medicines[one].kind != chart.allergy]
            return said
        early, late = chart.num_turns < MIN_TURNS - 1, chart.num_turns >= LAST_TURN - 2
        if (self.curiosity > 0 or (early and not self.comes_back)) and not late:
            self.curiosity -= 1
            open_kinds = [kind for kind in AFTER_PRESCRIPTION if kind not in self.questions_asked]
            return self._asking(self.rng.choice(open_kinds)) if open_kinds else self._utter([self.tell.phrase("fine")])
        if self.comes_back and not late:
            self.comes_back = False
            return self._utter(self._news())
        if early or (not chart.advised and not late and self.rng.random() < 0.3):
            return self._utter([self.tell.phrase("fine")])
        return self._goodbye()

    def _news(self) -> list[str]:
        """Some days later: the medicine has been taken, and helped or not."""
        tell, chart, rng = self.tell, self.chart, self.rng
        parts = [fill(tell.phrase("return"), {"d": self.language.number(rng.randint(3, 7))})]
        medicines = [tell.entity(medicine) for medicine in chart.prescribed]
        chart.learn(*chart.prescribed)
        named = rng.random() >= self.difficulty.short_answer
        using = {"m": self.language.listing("using", medicines, 0.5, rng)} if named else {}
        parts.append(fill(tell.phrase("using" if named else "using_short"), using))
        reactions = [one for medicine in chart.prescribed for one in self.world.medicines[medicine].adverse]
        reactions = [one for one in reactions if one not in chart.known and one not in chart.denied]
        draw = rng.random()
        if reactions and draw < 0.4:
            chart.report, chart.side_effect = "side_effect", reactions[0]
            chart.learn(reactions[0])
            return [*parts, tell.phrase("better"), tell.named("side_effect", reactions[0])]
        if draw < 0.65:
            chart.report = "worse"
            return [*parts, tell.phrase("not_better")]
        chart.report = "better"
        gone = [symptom for symptom in self.patient.symptoms if symptom in chart.known][:1]
        return [*parts, tell.phrase("better"), *(tell.named("gone", one) for one in gone if rng.random() < 0.5)]

    def _goodbye(self) -> str:
        self.chart.leaving = True
        return self._utter([self.tell.phrase("thanks")])

    def _lead(self) -> str:
        return self.tell.phrase("ack") if self.rng.random() < 0.6 else ""

    def _asking(self, kind: str) -> str:
        lead = self._lead()
        return self._utter([lead + self._ask(kind)])

    def _ask(self, kind: str) -> str:
        """Ask the physician something; the chart remembers what is to be answered."""
        self.questions_asked.add(kind)
        known = self.world.diseases[self.chart.diagnosis or self.patient.disease]
        if kind == "ask_worry":
            feared = self._feared_disease()
            self.chart.question = Question(kind, feared)
            return self.tell.named(kind, feared)
        if kind == "ask_medicine":
            had = {*self.chart.prescribed, *self.chart.known}
            others = [one for one in known.medicines if one not in had]
            if not others:
                return self._ask("ask_review")
            self.chart.question = Question(kind, self.rng.choice(others))
            return self.tell.named(kind, self.chart.question.subject)
        self.chart.question = Question(kind)
        return self.tell.phrase(kind)

    def _feared_disease(self) -> str:
        unlikely = {self.chart.diagnosis, self.patient.disease, *self.chart.known}
        others = [
            one for one in self.world.diseases.values() if one.id not in unlikely and one.sex in ("", self.patient.sex)
        ]
        others.sort(key=lambda one: -len({*one.typical, *one.occasional} & {*self.chart.known}))
        return self.rng.choice(others[:6]).id
