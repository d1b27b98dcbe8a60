"""Drawing a blind study: balanced, reproducible, and nothing in it says who wrote what."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.invented import NAMES, example_turns
from tests.evaluation.invented_study import SYSTEMS, conversations, drawn, invented_field, invented_session
from vrbot.dialogue.session import Session
from vrbot.errors import DataError, UsageError
from vrbot.evaluation.human_folders import write_folder
from vrbot.evaluation.human_items import conversation_before
from vrbot.evaluation.human_sample import SampleSettings, draw_study
from vrbot.evaluation.human_shares import assign_raters, balanced_orders
from vrbot.evaluation.human_study import KEY
from vrbot.evaluation.human_systems import read_field
from vrbot.evaluation.reply_files import write_replies
from vrbot.evaluation.turns import Latents

MANY = SampleSettings(dialogues=60, raters=2, seed=3)


def test_the_same_seed_draws_the_same_study_and_another_seed_another() -> None:
    field = invented_field(8)
    settings = SampleSettings(dialogues=5, seed=4)
    assert drawn(field, settings) == drawn(field, settings)
    assert drawn(field, settings)[0] != drawn(field, SampleSettings(dialogues=5, seed=5))[0]


def test_the_seed_without_the_replies_does_not_give_the_codes() -> None:
    one, _ = drawn(invented_field(8), SampleSettings(dialogues=8))
    two, _ = drawn(invented_field(8, systems=SYSTEMS[:2]), SampleSettings(dialogues=8))
    assert {item.item for item in one.items}.isdisjoint(item.item for item in two.items)


def test_only_the_key_names_systems_files_and_dialogues(tmp_path: Path) -> None:
    field = invented_field(8)
    write_folder(tmp_path / "study", draw_study(field, SampleSettings(dialogues=8), conversations), field, 1)
    files = [path for path in (tmp_path / "study").rglob("*") if path.is_file()]
    telling = {path.name for path in files if any(word in path.read_text("utf-8") for word in ("secret", "session-"))}
    assert len(files) == 12
    assert telling == {KEY}


def test_every_system_stands_equally_often_in_every_place_of_every_rater() -> None:
    study, key = drawn(invented_field(60), MANY)
    for share in study.shares:
        places = Counter(
            (key.replies[code], place) for page in share.pages for place, code in enumerate(page.candidates)
        )
        assert set(places.values()) == {20}


def test_places_of_explanations_are_balanced_too() -> None:
    field = invented_field(60, latents=lambda system, _: Latents((SYSTEMS.index(system),), 1, (2,)))
    study, key = drawn(field, MANY)
    for share in study.shares:
        first = Counter(key.explanations[page.explanations[0]] for page in share.pages)
        assert set(first.values()) == {20}


def test_the_place_in_one_item_does_not_follow_from_the_item_before() -> None:
    study, key = drawn(invented_field(60), MANY)
    for share in study.shares:
        first = [key.replies[page.candidates[0]] for page in share.pages]
        repeats = sum(one == next_one for one, next_one in pairwise(first))
        assert 8 <= repeats <= 32  # a third of 59 by chance


def test_no_order_of_systems_is_more_frequent_than_another() -> None:
    study, key = drawn(invented_field(300), SampleSettings(dialogues=300, raters=1))
    orders = Counter(tuple(key.replies[code] for code in page.candidates) for page in study.shares[0].pages)
    assert len(orders) == 6
    assert 25 < min(orders.values()) <= max(orders.values()) < 75


def test_each_of_two_systems_stands_first_in_half_of_their_pairs() -> None:
    study, key = drawn(invented_field(60), MANY)
    for share in study.shares:
        first = Counter(
            (key.replies[pair.first], key.replies[pair.second])
            for page in share.pages
            for pair in page.pairs
            if pair.first in key.replies
        )
        assert len(first) == 6
        assert set(first.values()) == {30}


def test_the_order_of_codes_says_nothing_about_the_system() -> None:
    study, key = drawn(invented_field(300, systems=SYSTEMS[:2]), SampleSettings(dialogues=300, raters=1))
    first = Counter(key.replies[item.candidates[0].code] for item in study.items)
    assert min(first.values()) > 120  # five standard deviations


def test_raters_see_different_orders() -> None:
    study, _ = drawn(invented_field(20), SampleSettings(dialogues=20))
    assert len({tuple(page.item for page in share.pages) for share in study.shares}) == 3


def test_replies_in_common_are_shown_once_and_credited_to_both() -> None:
    def alike(system: str, dialogue: int, turn: int) -> str:
        return " 多喝水 " if system != SYSTEMS[1] else "查血常规"

    study, key = drawn(invented_field(5, reply=alike), SampleSettings(dialogues=5))
    for item in study.items:
        owners = {candidate.reply: key.replies[candidate.code] for candidate in item.candidates}
        assert owners == {"多喝水": (SYSTEMS[0], SYSTEMS[2]), "查血常规": (SYSTEMS[1],)}
        assert [pair.about for pair in item.pairs] == ["reply"]


def test_a_reply_and_an_explanation_of_one_system_have_no_code_in_common() -> None:
    _, key = drawn(invented_field(5), SampleSettings(dialogues=5))
    assert key.replies.keys().isdisjoint(key.explanations)


def test_marks_ask_for_every_keyword_and_every_entity_of_the_reference() -> None:
    study, _ = drawn(invented_field(2), SampleSettings(dialogues=1))
    (explanation,) = study.items[0].explanations
    assert explanation.keywords == (NAMES[2], NAMES[1])
    assert explanation.linked == (NAMES[2],)
    assert [(mark.asked, mark.name) for mark in explanation.marks] == [
        ("keyword", NAMES[2]),
        ("keyword", NAMES[1]),
        ("entity", NAMES[2]),
        ("entity", NAMES[4]),
    ]


def test_a_system_without_keywords_is_only_in_the_key_and_one_without_actions_nowhere() -> None:
    spans = {SYSTEMS[0]: (2,), SYSTEMS[1]: (), SYSTEMS[2]: None}
    study, key = drawn(invented_field(3, latents=lambda system, _: Latents((), 0, spans[system])), SampleSettings(3))
    assert {owner for owners in key.explanations.values() for owner in owners} == {SYSTEMS[0]}
    assert set(key.without_keywords.values()) == {(SYSTEMS[1],)}
    assert len(key.without_keywords) == len(study.items) == 3


def test_the_conversation_ends_with_the_patient_and_does_not_show_the_answer() -> None:
    turns = invented_field(2).systems[0].turns
    context = conversation_before(turns, 4, conversations)  # turn 1 of the second dialogue
    assert [(line.speaker, line.text) for line in context] == [
        ("patient", "患者说 1.0"),
        ("physician", "医生说 1.0"),
        ("patient", "患者说 1.1"),
    ]
    assert [line.text for line in conversation_before(turns, 4, None)] == ["医生说 1.0"]


def test_a_corpus_with_other_words_is_refused() -> None:
    def other(name: str) -> Session:
        return invented_session(7)

    with pytest.raises(UsageError, match="another reply in the corpus"):
        draw_study(invented_field(2), SampleSettings(dialogues=1), other)


@given(st.integers(0, 30), st.integers(1, 5), st.integers(0, 9))
def test_balanced_orders_put_every_number_equally_often_in_every_place(num_rows: int, size: int, seed: int) -> None:
    orders = balanced_orders(num_rows, size, np.random.default_rng(seed))
    assert orders.shape == (num_rows, size)
    assert all(sorted(row) == list(range(size)) for row in orders.tolist())
    for place in range(size):
        counts = np.bincount(orders[:, place], minlength=size)
        assert counts.max() - counts.min() <= 1


@given(st.integers(1, 40), st.integers(1, 6), st.data())
def test_raters_have_even_loads_and_every_item_its_judges(num_items: int, num_raters: int, data: st.DataObject) -> None:
    judges = data.draw(st.integers(1, num_raters))
    assigned = assign_raters(num_items, num_raters, judges, np.random.default_rng(data.draw(st.integers(0, 9))))
    loads = [sum(rater in one for one in assigned) for rater in range(num_raters)]
    assert all(len(one) == judges for one in assigned)
    assert max(loads) - min(loads) <= 1


def test_every_two_raters_share_items_when_each_item_has_two_judges() -> None:
    assigned = assign_raters(60, 4, 2, np.random.default_rng(1))
    met = Counter(pair for one in assigned for pair in combinations(sorted(one), 2))
    assert len(met) == 6
    assert max(met.values()) - min(met.values()) <= 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dialogues": 0}, "dialogues must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"raters": 2, "judges_per_item": 3}, "between 1 and the 2 raters, got 3"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        SampleSettings(**settings)


def test_more_dialogues_than_there_are_is_refused() -> None:
    with pytest.raises(UsageError, match="7 dialogues were asked for and the replies are of 6"):
        draw_study(invented_field(6), SampleSettings(dialogues=7))


def test_several_turns_of_a_dialogue_can_be_drawn() -> None:
    _, key = drawn(invented_field(4), SampleSettings(dialogues=4, turns_per_dialogue=2))
    assert len({(turn.session, turn.turn) for turn in key.turns.values()}) == 8
    assert set(Counter(turn.session for turn in key.turns.values()).values()) == {2}


def test_stored_replies_become_a_field_with_their_paths(tmp_path: Path) -> None:
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for file in files:
        write_replies(file, example_turns(), NAMES)
    lines = [json.loads(line) for line in files[1].read_text("utf-8").splitlines()]
    lines[0]["paths"] = ["a path", ["咳嗽", "treated_by", "布洛芬"]]
    files[1].write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    field = read_field(files)
    assert [system.source.name for system in field.systems] == ["one", "two"]
    assert field.systems[1].paths[0] == ("a path", "咳嗽 → treated_by → 布洛芬")
    assert field.systems[0].paths == [()] * 4
    lines[1]["paths"] = [3]
    files[1].write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with pytest.raises(DataError, match=r"two.jsonl:2: paths: is not a list of paths"):
        read_field(files)


def test_files_of_different_turns_are_refused(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    write_replies(one, example_turns(), NAMES)
    write_replies(two, example_turns()[1:], NAMES)
    with pytest.raises(UsageError, match=r"one.jsonl and .*two.jsonl hold different turns"):
        read_field([one, two])
    with pytest.raises(UsageError, match="at least two files"):
        read_field([one])
    with pytest.raises(UsageError, match="given twice"):
        read_field([one, one])


def test_files_of_one_name_in_two_folders_are_told_apart(tmp_path: Path) -> None:
    files = [tmp_path / folder / "replies.jsonl" for folder in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        write_replies(file, example_turns(), NAMES)
    assert [system.source.name for system in read_field(files).systems] == [str(file) for file in files]


def test_a_folder_that_may_hold_ratings_is_not_overwritten(tmp_path: Path) -> None:
    field = invented_field(2)
    drawing = draw_study(field, SampleSettings(dialogues=2))
    write_folder(tmp_path / "study", drawing, field, 1)
    with pytest.raises(UsageError, match="may hold ratings"):
        write_folder(tmp_path / "study", drawing, field, 1)
