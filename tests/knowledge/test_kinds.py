"""Entity types inferred from relations."""

from __future__ import annotations

import pytest

from vrbot.knowledge.kinds import ROLES, TYPES, infer_types
from vrbot.knowledge.triples import Triple


@pytest.mark.parametrize(
    ("relation", "head", "tail"),
    [
        ("contains_symptom", "disease", "symptom"),
        ("symptom_of", "symptom", "disease"),
        ("to_treat", "medicine", "disease"),
        ("treated_by", "disease", "medicine"),
        ("adverse_reaction", "medicine", "symptom"),
        ("adverse_reaction_of", "symptom", "medicine"),
        ("check_item", "disease", "test"),
        ("checked_for", "test", "disease"),
        ("related_to", "other", "other"),
        ("an unheard-of relation", "other", "other"),
    ],
)
def test_a_relation_tells_what_stands_at_its_ends(relation: str, head: str, tail: str) -> None:
    assert infer_types([Triple("a", relation, "b")]) == {"a": head, "b": tail}


def test_the_majority_of_relations_decides() -> None:
    facts = [Triple("x", "to_treat", "a"), Triple("x", "contains_symptom", "b"), Triple("x", "to_treat", "c")]
    assert infer_types(facts)["x"] == "medicine"


def test_all_twelve_relations_are_known_and_name_known_types() -> None:
    assert len(ROLES) == 12
    assert {role for pair in ROLES.values() for role in pair} <= {None, *TYPES}
