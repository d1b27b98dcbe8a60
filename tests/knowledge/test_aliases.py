"""The alias cleaner on an invented map; every row is of a sort that machine-made maps hold."""

from __future__ import annotations

import pytest

from vrbot.knowledge.aliases import AliasCleaning, clean_aliases
from vrbot.knowledge.kinds import NameModel

ORGANS = ("肝", "胃", "肺", "肾", "脾", "脑", "皮", "骨", "牙", "鼻")
ILLS = ("炎", "结石", "肿瘤", "出血", "疼痛", "细胞瘤")
CONDITIONS = [f"{side}{organ}{ill}" for side in ("左", "右") for organ in ORGANS for ill in ILLS]
STEMS = ("阿莫", "布西", "克拉", "洛芬", "美托", "硝唑", "他汀", "沙坦", "西泮", "普利")
FORMS = ("片", "胶囊", "颗粒", "注射液")
MEDICINES = [f"{stem}{salt}{form}" for stem in STEMS for salt in ("", "钠", "钾") for form in FORMS]
TYPES = {
    **dict.fromkeys(CONDITIONS, "disease"),
    **dict.fromkeys(MEDICINES, "medicine"),
    "阻塞性黄疸": "symptom",
    "尿崩症": "disease",
    "心动过速": "disease",
    "心速不齐": "disease",
    "心速增快": "symptom",
    "低血糖....": "disease",
    "偏瘫": "symptom",
    "痔": "disease",
    "大": "symptom",
    "5": "medicine",
}


def cleaned(**aliases: str) -> AliasCleaning:
    return clean_aliases(aliases, TYPES)


@pytest.mark.parametrize(
    ("alias", "target"),
    [
        ("左肝炎", "左肝炎"),  # says nothing, harms nothing
        ("低血糖", "低血糖...."),  # the same letters
        ("尿崩", "尿崩症"),  # an empty tail left out
        ("黄疸", "阻塞性黄疸"),  # keeps the end
        ("心速", "心动过速"),  # an abbreviation, though 心速 begins other names
        ("半身不遂", "偏瘫"),  # another word altogether
        ("阿莫", "阿莫胶囊"),  # a medicine without its form
        ("可乐必", "布西片"),  # a brand
        ("内痔", "痔"),
    ],
)
def test_a_plausible_alias_stays(alias: str, target: str) -> None:
    assert cleaned(**{alias: target}).kept == {alias: target}


@pytest.mark.parametrize(
    ("alias", "target", "why"),
    [
        ("洛芬缓释胶囊", "左皮出血", "looks like a medicine"),
        ("脾疼痛", "克拉片", "looks like a condition"),
        ("阿莫片", "左肺炎", "is a medicine"),
        ("细胞", "阻塞性黄疸", "part of 20 other names"),
        ("注射液", "阿莫钠颗粒", "general word"),
        ("阻塞性", "阻塞性黄疸", "cut off"),
        ("突发性", "心动过速", "describes"),
        ("141", "布西片", "no letters"),
        ("美沙", "5", "no letters"),
        ("咯血", "大", "single character"),
        ("头痛", "幻想病", "not a known entity"),
    ],
)
def test_a_nonsense_alias_goes_and_the_reason_is_given(alias: str, target: str, why: str) -> None:
    cleaning = cleaned(**{alias: target})
    assert cleaning.kept == {}
    assert (cleaning.dropped[0].alias, cleaning.dropped[0].target) == (alias, target)
    assert why in cleaning.dropped[0].reason


def test_every_row_is_either_kept_or_dropped() -> None:
    aliases = {"黄疸": "阻塞性黄疸", "细胞": "阻塞性黄疸", "141": "布西片"}
    cleaning = clean_aliases(aliases, TYPES)
    dropped = {row.alias: row.target for row in cleaning.dropped}
    assert cleaning.kept | dropped == aliases
    assert not cleaning.kept.keys() & dropped.keys()


def test_a_protected_alias_of_an_unknown_target_is_idle_not_wrong() -> None:
    assert clean_aliases({"头痛": "幻想病"}, TYPES, protected={"头痛"}).kept == {"头痛": "幻想病"}


def test_the_type_a_list_gives_counts_as_evidence() -> None:
    brand = {"美林": "左皮出血"}
    assert clean_aliases(brand, TYPES).kept == brand
    assert clean_aliases(brand, {**TYPES, "美林": "medicine"}).kept == {}


def test_the_name_model_keeps_silent_until_it_has_seen_enough_names() -> None:
    few = dict(list(TYPES.items())[:50])
    assert NameModel(few).medicine_log_odds("阿莫胶囊") == 0.0
    assert NameModel(TYPES).medicine_log_odds("阿莫胶囊") > 3.0 > -3.0 > NameModel(TYPES).medicine_log_odds("左骨结石")


def test_of_a_trusted_map_only_rows_that_lead_nowhere_go() -> None:
    aliases = {"阻塞性": "阻塞性黄疸", "141": "布西片", "洛芬缓释胶囊": "左皮出血", "头痛": "幻想病"}
    cleaning = clean_aliases(aliases, TYPES, trusted=True)
    assert [(row.alias, row.reason) for row in cleaning.dropped] == [
        ("头痛", "the target 幻想病 is not a known entity")
    ]
    assert cleaning.kept == {alias: target for alias, target in aliases.items() if alias != "头痛"}


def test_an_empty_map_is_clean() -> None:
    assert clean_aliases({}, TYPES) == AliasCleaning({}, [])
