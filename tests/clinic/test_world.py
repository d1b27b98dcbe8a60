"""Laws of the clinic's medical world."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files

import pytest

from vrbot.clinic.english import English
from vrbot.clinic.reference import NameFinder
from vrbot.clinic.world import INVERSES, LANGUAGES, RELATIONS, load_world

PAPER_RELATIONS = {
    "contains_symptom",
    "symptom_of",
    "to_treat",
    "treated_by",
    "adverse_reaction",
    "adverse_reaction_of",
    "complication_to",
    "related_to",
    "caused_by",
    "lead_to",
    "check_item",
    "checked_for",
}


def test_the_world_is_as_large_as_promised():
    world = load_world()
    counts = Counter(entity.kind for entity in world.entities.values())
    assert counts["disease"] >= 60
    assert counts["symptom"] >= 150
    assert counts["medicine"] >= 120
    assert counts["test"] >= 40
    assert len(world.departments) == 8
    assert {disease.department for disease in world.diseases.values()} == set(world.departments)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_entity_has_a_name_of_its_own_and_a_colloquial_one(language):
    world = load_world()
    owners: dict[str, str] = {}
    for entity in world.entities.values():
        names = entity.wordings[language].names
        assert len(names) >= 2, entity.id
        assert len(set(names)) == len(names), entity.id
        for name in names:
            assert name.strip() == name
            assert name
            assert owners.setdefault(name.lower(), entity.id) == entity.id, f"{name} names two entities"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_relation_has_its_inverse(language):
    triples = load_world().triples(language)
    held = set(triples)
    assert len(held) == len(triples)
    inverses = {**INVERSES, **{inverse: relation for relation, inverse in INVERSES.items()}}
    for head, relation, tail in triples:
        assert (tail, inverses[relation], head) in held


def test_the_relations_are_those_of_the_paper_and_all_are_used():
    assert set(RELATIONS) == PAPER_RELATIONS
    assert {relation for _, relation, _ in load_world().triples("en")} == PAPER_RELATIONS


@pytest.mark.parametrize("language", LANGUAGES)
def test_triples_and_aliases_speak_of_known_entities_only(language):
    world = load_world()
    names = {name for name, _ in world.typed_names(language)}
    assert len(names) == len(world.entities)
    assert {name for head, _, tail in world.triples(language) for name in (head, tail)} <= names
    aliases = world.aliases(language)
    assert set(aliases.values()) <= names
    assert not set(aliases) & names


def test_both_languages_describe_the_same_graph():
    world = load_world()
    ids = {language: {entity.name(language): entity.id for entity in world.entities.values()} for language in LANGUAGES}
    graphs = [
        {(ids[language][head], relation, ids[language][tail]) for head, relation, tail in world.triples(language)}
        for language in LANGUAGES
    ]
    assert graphs[0] == graphs[1]


def test_diseases_medicines_and_symptoms_refer_to_entities_of_the_right_kind():
    world = load_world()
    kinds = {entity.id: entity.kind for entity in world.entities.values()}
    for disease in world.diseases.values():
        assert len(disease.typical) >= 2
        assert {kinds[one] for one in disease.typical + disease.occasional} == {"symptom"}
        assert not set(disease.typical) & set(disease.occasional), disease.id
        assert {kinds[one] for one in disease.tests} == {"test"}
        assert {kinds[one] for one in disease.medicines} == {"medicine"}
        assert {kinds[one] for one in disease.causes} <= {"disease", "attribute"}
        assert {kinds[one] for one in disease.complications} <= {"disease", "symptom"}
        assert disease.confirming <= set(disease.tests)
    for medicine in world.medicines.values():
        assert {kinds[one] for one in medicine.adverse} <= {"symptom"}
        assert {kinds[one] for one in medicine.avoid} <= {"disease", "attribute"}
    for symptom, general in world.kind_of.items():
        assert {kinds[one] for one in (symptom, *general)} == {"symptom"}
        assert symptom not in general


@pytest.mark.parametrize("language", LANGUAGES)
def test_many_findings_can_be_implied_without_naming_them(language):
    world = load_world()
    finder = NameFinder(world, language)
    clauses = [(entity, clause) for entity in world.entities.values() for clause in entity.wordings[language].implied]
    assert len({entity.id for entity, _ in clauses}) >= 60
    for entity, clause in clauses:
        text = English().finish(clause, "I") if language == "en" else clause
        assert entity.name(language) not in finder.find(text), clause


def test_the_data_files_are_small():
    tables = [file for file in files("vrbot.clinic").iterdir() if file.name.endswith((".csv", ".json"))]
    assert len(tables) >= 8
    assert all(len(file.read_bytes()) < 500_000 for file in tables)
