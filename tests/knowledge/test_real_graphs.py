"""The paper's three graphs, where they are at hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.real_data import real_data
from vrbot.knowledge.aliases import clean_aliases, read_aliases
from vrbot.knowledge.assembly import assemble_knowledge
from vrbot.knowledge.entities import read_entities, read_lexicon
from vrbot.knowledge.graph import Graph
from vrbot.knowledge.kinds import infer_types
from vrbot.knowledge.retrieval import retrieve_subgraph
from vrbot.knowledge.triples import load_triples

SIZES = {"kamed": (53_158, 3_948), "meddg": (1_240, 107), "meddialog": (79_868, 3_601)}


@pytest.mark.parametrize("name", SIZES)
def test_the_graph_has_the_published_size(name: str) -> None:
    loaded = load_triples(real_data(f"graphs/{name}/graph.csv"))
    knowledge = assemble_knowledge(loaded.triples)
    graph = Graph.from_triples(knowledge.triples, len(knowledge.inventory), knowledge.relations)
    connected = np.unique(np.concatenate((np.flatnonzero(np.diff(graph.offsets)), graph.targets)))
    assert (graph.num_edges, len(connected), len(graph.relations)) == (*SIZES[name], 12)
    assert loaded.num_duplicates == 0


def test_the_cleaner_drops_the_known_nonsense_and_keeps_known_synonyms() -> None:
    types = infer_types(load_triples(real_data("graphs/kamed/graph.csv")).triples)
    cleaning = clean_aliases(read_aliases(real_data("graphs/kamed/alias.json")), types)
    dropped = {row.alias for row in cleaning.dropped}
    assert {"小儿", "布洛芬", "气喘", "细胞"} <= dropped
    assert {"牛皮癣", "拜新同", "红眼病", "网球肘", "宫外孕", "思密达", "感冒"} <= set(cleaning.kept)
    assert len(cleaning.kept) > 0.6 * (len(cleaning.kept) + len(cleaning.dropped))


def test_the_alias_map_of_label_names_mostly_survives() -> None:
    types = infer_types(load_triples(real_data("graphs/meddg/graph.csv")).triples)
    aliases = read_aliases(real_data("graphs/meddg/alias.json"))
    assert len(clean_aliases(aliases, types).kept) >= 0.85 * len(aliases)
    labels = read_entities(real_data("meddg/entities.csv"))
    assert clean_aliases(aliases, {**types, **labels}, protected=set(labels)).dropped == []


def test_labels_lexicon_and_graph_share_one_index_space() -> None:
    labels = read_entities(real_data("meddg/entities.csv"))
    lexicon = read_lexicon(real_data("meddg/lexicon.json"))
    facts = load_triples(real_data("graphs/meddg/graph.csv")).triples
    inventory = assemble_knowledge(facts, read_aliases(real_data("graphs/meddg/alias.json")), lexicon, labels).inventory
    assert all(inventory.ids_of(label) for label in labels)
    for surface, names in lexicon.items():
        if surface not in labels:
            assert inventory.surfaces[surface] == tuple(inventory.id_of(name) for name in names)


def test_an_uncapped_neighbourhood_is_vast_and_a_capped_one_is_not() -> None:
    knowledge = assemble_knowledge(load_triples(real_data("graphs/kamed/graph.csv")).triples)
    graph = Graph.from_triples(knowledge.triples, len(knowledge.inventory), knowledge.relations)
    cough = knowledge.inventory.id_of("咳嗽")
    assert cough is not None
    assert retrieve_subgraph(graph, [cough]).num_nodes > 0.4 * graph.num_nodes
    assert retrieve_subgraph(graph, [cough], limit=50).num_nodes == 50
