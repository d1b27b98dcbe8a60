"""Graph, aliases, lexicon and labels in one index space."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from vrbot.knowledge.assembly import Knowledge, assemble_knowledge
from vrbot.knowledge.entities import Inventory
from vrbot.knowledge.triples import Triple

FACTS = [
    Triple("pyrexia", "symptom_of", "influenza"),
    Triple("influenza", "contains_symptom", "pyrexia"),
    Triple("paracetamol", "to_treat", "pyrexia"),
]


def facts_of(knowledge: Knowledge) -> set[tuple[str, str, str]]:
    names = knowledge.inventory.names
    return {(names[head], knowledge.relations[relation], names[tail]) for head, relation, tail in knowledge.triples}


def test_without_anything_else_the_entities_are_the_names_of_the_graph() -> None:
    knowledge = assemble_knowledge(FACTS)
    assert knowledge.inventory.names == ("pyrexia", "influenza", "paracetamol")
    assert knowledge.inventory.types == ("symptom", "disease", "medicine")
    assert facts_of(knowledge) == set(FACTS)


def test_a_graph_name_takes_the_protected_name_that_is_its_alias() -> None:
    knowledge = assemble_knowledge(FACTS, {"fever": "pyrexia"}, entities={"fever": "symptom"})
    assert "pyrexia" not in knowledge.inventory.names
    assert ("paracetamol", "to_treat", "fever") in facts_of(knowledge)
    assert knowledge.inventory.id_of("pyrexia") == knowledge.inventory.id_of("fever")


def test_several_protected_aliases_of_one_graph_name_each_get_its_triples() -> None:
    lexicon = {"feverish": ("fever",), "hot": ("hot",)}
    knowledge = assemble_knowledge(FACTS, {"fever": "pyrexia", "hot": "pyrexia"}, lexicon)
    treated = {tail for head, relation, tail in facts_of(knowledge) if relation == "to_treat"}
    assert treated == {"fever", "hot"}
    assert knowledge.inventory.id_of("pyrexia") is None  # it means both
    assert len(knowledge.inventory.ids_of("pyrexia")) == 2


def test_a_protected_name_is_never_folded_into_another() -> None:
    both = {"fever": "symptom", "pyrexia": "symptom"}
    knowledge = assemble_knowledge(FACTS, {"fever": "pyrexia"}, entities=both)
    assert set(both) <= set(knowledge.inventory.names)
    assert knowledge.inventory.id_of("fever") != knowledge.inventory.id_of("pyrexia")


def test_an_alias_that_labels_do_not_use_is_a_surface_of_its_target() -> None:
    knowledge = assemble_knowledge(FACTS, {"flu": "influenza"}, vocabulary_entities=["flu", "cough"])
    inventory = knowledge.inventory
    assert "flu" not in inventory.names
    assert inventory.surfaces["flu"] == (inventory.id_of("influenza"),)
    assert inventory.types[inventory.names.index("cough")] == "other"


def test_a_graph_name_that_is_an_alias_is_folded_with_its_triples() -> None:
    facts = [*FACTS, Triple("flu", "treated_by", "oseltamivir"), Triple("flu", "related_to", "influenza")]
    knowledge = assemble_knowledge(facts, {"flu": "influenza"})
    assert ("influenza", "treated_by", "oseltamivir") in facts_of(knowledge)
    assert not any(head == tail for head, _, tail in facts_of(knowledge))


def test_an_alias_of_something_unknown_changes_nothing() -> None:
    knowledge = assemble_knowledge(FACTS, {"grippe": "catarrh"}, vocabulary_entities=["grippe"])
    assert knowledge.inventory.id_of("grippe") is not None
    assert "catarrh" not in knowledge.inventory.surfaces


def test_aliases_may_form_chains_and_circles() -> None:
    chain = assemble_knowledge(FACTS, {"la grippe": "flu", "flu": "influenza"}, vocabulary_entities=["flu"])
    assert chain.inventory.id_of("la grippe") == chain.inventory.id_of("influenza")
    circle = assemble_knowledge(FACTS, {"influenza": "pyrexia", "pyrexia": "influenza"})
    assert circle.inventory.id_of("influenza") == circle.inventory.id_of("pyrexia") is not None


def test_single_characters_are_surfaces_only_where_they_can_be_trusted() -> None:
    facts = [Triple("痰", "symptom_of", "肺炎"), Triple("药", "to_treat", "肺炎")]
    surfaces = assemble_knowledge(facts, entities={"痰": "symptom"}).inventory.surfaces
    assert "痰" in surfaces
    assert "药" not in surfaces
    aliases = {"喘": "肺炎"}
    assert "喘" not in assemble_knowledge(facts, aliases).inventory.surfaces
    assert "喘" in assemble_knowledge(facts, aliases, trust_aliases=True).inventory.surfaces


def test_the_lexicon_decides_what_a_text_means_but_a_label_name_means_itself() -> None:
    inventory = assemble_knowledge(FACTS, lexicon={"influenza": ("cold",)}).inventory
    assert inventory.surfaces["influenza"] == (inventory.id_of("cold"),)
    assert inventory.names[inventory.id_of("influenza") or 0] == "influenza"


def test_given_types_win_over_inferred_ones() -> None:
    knowledge = assemble_knowledge(FACTS, entities={"pyrexia": "disease"})
    assert knowledge.inventory.types[knowledge.inventory.names.index("pyrexia")] == "disease"


def test_a_label_is_looked_up_among_names_then_surfaces_then_in_another_case() -> None:
    inventory = Inventory(("CT", "gastritis", "enteritis"), ("test", "disease", "disease"), {"gut": (1, 2), "CT": (0,)})
    found = [inventory.ids_of(label) for label in ("ct", "gut", "gastritis", "nothing")]
    assert found == [(0,), (1, 2), (1,), ()]


words = st.sampled_from(["a1", "b2", "c3", "d4", "e5", "f6"])


@given(
    st.lists(st.builds(Triple, words, st.sampled_from(["to_treat", "related_to"]), words), max_size=8),
    st.dictionaries(words, words, max_size=5),
    st.dictionaries(words, st.lists(words, min_size=1, max_size=2).map(tuple), max_size=3),
    st.dictionaries(words, st.just("symptom"), max_size=3),
    st.lists(words, max_size=4),
)
def test_every_name_of_every_source_leads_to_an_entity(facts, aliases, lexicon, entities, vocabulary) -> None:
    knowledge = assemble_knowledge(facts, aliases, lexicon, entities, vocabulary)
    inventory = knowledge.inventory
    protected = {*entities, *(name for names in lexicon.values() for name in names)}
    assert len(set(inventory.names)) == len(inventory.names) == len(inventory.types)
    assert protected <= set(inventory.names)
    resolved = [inventory.ids_of(name) for name in (*protected, *vocabulary)]
    assert all(resolved)
    assert all(0 <= number < len(inventory) for ids in inventory.surfaces.values() for number in ids)
    assert len(knowledge.triples) == 0 or knowledge.triples[:, [0, 2]].max() < len(inventory)


def test_an_inventory_survives_saving_and_loading(tmp_path: Path) -> None:
    inventory = assemble_knowledge(FACTS, {"flu": "influenza"}).inventory
    inventory.save(tmp_path / "inventory.json")
    assert Inventory.load(tmp_path / "inventory.json") == inventory
