"""Claims in a draft that nothing supports."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vrbot.clinic.world import load_world
from vrbot.knowledge.entities import Inventory
from vrbot.safety.claims import ClaimChecker, unsupported

NAMES = [
    name for code in ("zh", "en") for name, kind in load_world().typed_names(code) if kind in ("medicine", "disease")
]


def surfaces(draft: str, supported: list[str]) -> list[str]:
    return [claim.surface for claim in unsupported(draft, supported)]


def test_a_medicine_and_a_disease_out_of_nowhere_are_marked_where_they_stand() -> None:
    draft = "可能是肺炎，先吃阿莫西林"
    claims = unsupported(draft, ["我咳嗽发烧"])
    assert [(one.kind, draft[one.start : one.end]) for one in claims] == [("disease", "肺炎"), ("medicine", "阿莫西林")]


def test_another_name_for_the_same_thing_supports_it() -> None:
    assert surfaces("take ibuprofen", ["吃了美林"]) == []
    assert surfaces("对乙酰氨基酚", ["我在吃感康"]) == []
    assert surfaces("感康", ["对乙酰氨基酚"]) == ["感康"]


def test_keywords_and_names_along_a_path_support_as_the_conversation_does() -> None:
    draft = "It may be pneumonia; amoxicillin helps."
    assert surfaces(draft, ["I cough", "pneumonia"]) == ["amoxicillin"]
    assert surfaces(draft, ["I cough", "pneumonia", "amoxicillin"]) == []


def test_an_inventory_adds_its_own_names() -> None:
    inventory = Inventory(("霜叶病", "雾草丸"), ("disease", "medicine"), {"霜叶症": (0,)})
    checker = ClaimChecker(inventory)
    assert [one.surface for one in unsupported("霜叶症可用雾草丸", ["我有霜叶病"], checker)] == ["雾草丸"]


@given(st.lists(st.sampled_from(NAMES), max_size=4), st.text(max_size=40))
def test_a_text_supports_itself(names: list[str], text: str) -> None:
    draft = text + "，".join(names)
    assert unsupported(draft, [draft]) == ()


@given(st.sampled_from(NAMES))
def test_nothing_supports_nothing(name: str) -> None:
    assert len(unsupported(name, [])) >= 1
