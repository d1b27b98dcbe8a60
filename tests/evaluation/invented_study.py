"""Invented systems that answer the same turns, studies drawn from them, and judgements of raters."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from tests.evaluation.invented import NAMES
from vrbot.dialogue.session import Session, Turn
from vrbot.evaluation.human_ratings import EXPLAINED, PREFERRED, Asked, Judgement
from vrbot.evaluation.human_sample import SampleSettings, draw_study, key_of
from vrbot.evaluation.human_study import Key, Study, SystemFile
from vrbot.evaluation.human_systems import Answers, Field
from vrbot.evaluation.turns import Evidence, Latents, ScoredTurn

SYSTEMS = ("secret-alpha", "secret-beta", "secret-gamma")
ODD_TEXTS = ("=1+1", "+86", "-3", "@me", "'quoted", '说"好"', "一\n二", "a,b;c\td", " =x", "＝全角", "")

Reply = Callable[[str, int, int], str]
"""The reply of a system at a turn of a dialogue."""


def plain_reply(system: str, dialogue: int, turn: int) -> str:
    return f"回复 {SYSTEMS.index(system) * 1000 + dialogue * 10 + turn}"


def invented_session(dialogue: int, num_turns: int = 3) -> Session:
    turns = [Turn(f"患者说 {dialogue}.{turn}", f"医生说 {dialogue}.{turn}") for turn in range(num_turns)]
    return Session(f"session-{dialogue}", tuple(turns))


def conversations(name: str) -> Session:
    return invented_session(int(name.removeprefix("session-")))


def scored_turn(dialogue: int, turn: int, reply: str, prior: Latents, entities: frozenset[int]) -> ScoredTurn:
    reference = invented_session(dialogue).turns[turn].physician
    return ScoredTurn(
        f"session-{dialogue}",
        turn,
        reply,
        reference,
        (),
        (),
        reference_entities=entities,
        prior=prior,
        evidence=None if prior.keywords is None else Evidence(frozenset({0}), frozenset({2, 3})),
    )


def invented_field(
    num_dialogues: int = 6,
    systems: Sequence[str] = SYSTEMS,
    reply: Reply = plain_reply,
    latents: Callable[[str, int], Latents] = lambda system, dialogue: Latents((0, 1), 1, (2, 1)),
    entities: frozenset[int] = frozenset({2, 4}),
) -> Field:
    answers = []
    for number, system in enumerate(systems):
        turns = [
            scored_turn(dialogue, turn, reply(system, dialogue, turn), latents(system, dialogue), entities)
            for dialogue in range(num_dialogues)
            for turn in range(3)
        ]
        source = SystemFile(system, f"{system}.jsonl", f"{number:064x}")
        answers.append(Answers(source, turns, [("胃炎 → 治疗 → 布洛芬",)] * len(turns)))
    return Field(tuple(answers), NAMES)


def drawn(field: Field, settings: SampleSettings) -> tuple[Study, Key]:
    draw = draw_study(field, settings, conversations)
    return draw.study, key_of(draw, field, settings.seed, "")


def possible_answers(asked: str) -> Sequence[int]:
    return {PREFERRED: (-1, 0, 1), EXPLAINED: (0, 1)}.get(asked, (1, 2, 3, 4, 5))


def random_judgements(study: Study, seed: int, share: float = 0.8) -> list[Judgement]:
    """About this share of all answers, each at random."""
    chance, asked = random.Random(seed), Asked(study)
    return [
        Judgement(*question, chance.choice(possible_answers(question[2])))
        for rater in study.shares
        for question in asked.questions(rater)
        if chance.random() < share
    ]


odd_replies = st.lists(st.sampled_from(ODD_TEXTS) | st.text(st.characters(codec="utf-8"), max_size=8), min_size=9)
