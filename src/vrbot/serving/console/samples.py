"""Sample consultations of a demonstration, in both languages: some finished, some that wait for an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vrbot.serving.actors import Actor
from vrbot.serving.service import Desk


@dataclass(frozen=True)
class Sample:
    """A consultation: what the patient says, with the answer to each; None leaves the turn to the model.

    An answer that is the last one and has `waits` is only a draft in the physician's words.
    """

    language: str
    reference: str
    turns: tuple[tuple[str, str | None], ...]
    waits: bool = False


FINISHED = (
    Sample(
        "zh",
        "诊室 1 · 李先生",
        (
            ("医生您好，我拉肚子两天了，一天四五次。", "您好，有没有发热、呕吐？大便里有没有血？"),
            (
                "没有发热，吐过一次，没有血。",
                "考虑急性胃肠炎。请少量多次喝口服补液盐，若出现血便或高热请及时就诊。",
            ),
            ("好的，谢谢医生！", "不客气，祝您早日康复。"),
        ),
    ),
    Sample(
        "en",
        "Room 2 · Ms Hart",
        (
            ("My nose has been running for a week and I sneeze a lot.", "Do your eyes itch? Is it worse outdoors?"),
            ("Yes, both. Mostly in the morning.", "This sounds like allergic rhinitis. Rinsing with salt water helps."),
            ("Thank you, I will try that.", "You are welcome. Come back if it does not get better."),
        ),
    ),
)
ALLERGIES = (
    Sample(
        "zh",
        "诊室 3 · 陈女士",
        (("我嗓子疼，发烧两天。我对青霉素过敏。", "可以先服用阿莫西林，每日三次。"),),
        waits=True,
    ),
    Sample(
        "en",
        "Room 4 · Mr Novak",
        (("I have a sore throat and a fever. I am allergic to penicillin.", "You can take amoxicillin for a week."),),
        waits=True,
    ),
)
LIVE = {
    "zh": (
        Sample(
            "zh",
            "诊室 5 · 王女士",
            (("我尿频尿急，尿痛两天了。", "您好，有没有发烧、腰痛？"), ("没有发烧，也不腰痛。", None)),
            waits=True,
        ),
        Sample("zh", "诊室 7 · 刘先生", (("我最近胃疼，反酸，烧心", None),), waits=True),
        Sample("zh", "诊室 6 · 赵先生", (("我胸口压榨样疼痛半个小时了，还出冷汗。", None),), waits=True),
    ),
    "en": (
        Sample(
            "en",
            "Room 5 · Mrs Wood",
            (
                ("I have had a cough and a fever for three days.", "Do you have a sore throat, or chest pain?"),
                ("No chest pain, but a sore throat. What is it?", None),
            ),
            waits=True,
        ),
        Sample("en", "Room 7 · Ms Lee", (("I have heartburn, acid reflux and stomach pain.", None),), waits=True),
        Sample(
            "en",
            "Room 6 · Mr Bell",
            (("I have had crushing chest pain for half an hour and I am sweating.", None),),
            waits=True,
        ),
    ),
}
"""By the language of the model that answers in them."""


def seed_samples(desk: Desk, actor: Actor, language: str) -> int:
    """Opens the samples for an actor without any consultation, answered by a simulated physician; how many."""
    if desk.consultations.all_of(actor):
        return 0
    samples: Sequence[Sample] = (*FINISHED, *ALLERGIES, *LIVE[language])
    for sample in samples:
        _seed(desk, actor, sample)
    return len(samples)


def _seed(desk: Desk, actor: Actor, sample: Sample) -> None:
    opened = desk.consultations.open(actor, sample.language, sample.reference)
    for number, (said, answer) in enumerate(sample.turns, start=1):
        turn = desk.consultations.receive(actor, opened.id, f"sample-{number}", said)
        drafting = desk.drafting
        draft = drafting.draft(actor, turn.id) if answer is None else drafting.write(actor, turn.id, answer)
        last = number == len(sample.turns)
        if draft.failure is None and not (last and sample.waits):
            desk.signoff.simulate_physician(draft.id)
    if not sample.waits:
        desk.consultations.close(actor, opened.id)
