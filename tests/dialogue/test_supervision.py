"""Which dialogues keep their labels: nested, deterministic, publishable."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialogue.invented import invented_encoder
from vrbot.dialogue.conversation import encode_conversation
from vrbot.dialogue.splits import Split
from vrbot.dialogue.supervision import every_label, read_selection, select_labels
from vrbot.errors import ConfigError, DataError

SESSIONS = [f"dialogue-{number}" for number in range(97)]
FRACTION = st.floats(0, 1)


def split_of(num_turns: list[int]) -> Split:
    conversation = encode_conversation(invented_encoder([]), [("咳嗽", "好")] * sum(num_turns))
    names = tuple(f"s{number}" for number in range(len(num_turns)))
    return Split(names, np.cumsum([0, *num_turns]), conversation.texts, conversation.labels)


@given(small=FRACTION, large=FRACTION, seed=st.integers(0, 5))
def test_a_smaller_selection_lies_inside_a_larger_one(small: float, large: float, seed: int) -> None:
    small, large = sorted((small, large))
    few, many = (select_labels(SESSIONS, seed, state=fraction) for fraction in (small, large))
    assert set(few.state) <= set(many.state)
    assert few.state == many.state[: len(few.state)]


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.25, 0.5, 1.0])
def test_the_selection_has_the_fraction_rounded_up(fraction: float) -> None:
    assert len(select_labels(SESSIONS, 0, state=fraction).state) == math.ceil(fraction * len(SESSIONS))


def test_a_fraction_of_a_whole_number_is_not_rounded_further_up() -> None:
    hundred = [str(number) for number in range(100)]
    assert len(select_labels(hundred, 0, state=0.07).state) == 7  # 0.07 * 100 is a little more than 7 in floats


def test_equal_fractions_of_state_and_action_labels_are_the_same_dialogues() -> None:
    selection = select_labels(SESSIONS, 3, state=0.25, action=0.25)
    assert selection.state == selection.keywords == selection.category


def test_kinds_are_independent_and_category_follows_action_unless_given() -> None:
    selection = select_labels(SESSIONS, 3, state=0.0, action=0.5)
    assert selection.state == ()
    assert selection.category == selection.keywords
    assert len(select_labels(SESSIONS, 3, action=0.5, category=1.0).category) == len(SESSIONS)


def test_the_seed_decides_and_the_order_of_the_sessions_does_not() -> None:
    selection = select_labels(SESSIONS, 7, state=0.3)
    assert selection == select_labels(SESSIONS[::-1], 7, state=0.3)
    assert set(selection.state) != set(select_labels(SESSIONS, 8, state=0.3).state)
    assert select_labels(["a", "b", "c", "d"], 0).state == ("d", "a", "b", "c")  # must never change


def test_masks_keep_whole_dialogues() -> None:
    split = split_of([3, 1, 2])
    masks = select_labels(split.session_ids, 0, state=0.3, action=0.0).masks(split)
    kept = [masks.state[0:3], masks.state[3:4], masks.state[4:6]]
    assert [part.all() for part in kept] == [part.any() for part in kept]
    assert sum(part.all() for part in kept) == 1
    assert not masks.keywords.any()
    assert not masks.category.any()
    assert every_label(split).state.all()


def test_a_stored_selection_is_read_back_as_it_was(tmp_path: Path) -> None:
    selection = select_labels(SESSIONS, 5, state=0.1, action=0.25)
    (tmp_path / "labels.json").write_text(json.dumps(asdict(selection)), encoding="utf-8")
    assert read_selection(tmp_path / "labels.json") == selection


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan])
def test_a_fraction_outside_zero_and_one_is_refused(fraction: float) -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        select_labels(SESSIONS, 0, state=fraction)


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"state": 3}', '{"state": [], "category": [], "keywords": [1]}', "\udcff", '{"state": []}']
)
def test_a_file_that_is_no_selection_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "labels.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=r"labels\.json"):
        read_selection(path)
    with pytest.raises(DataError, match="nowhere"):
        read_selection(tmp_path / "nowhere.json")
