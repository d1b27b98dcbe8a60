"""The graph in compressed rows, in memory and on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrbot.errors import IntegrityError
from vrbot.knowledge.graph import Graph

RELATIONS = ("caused_by", "related_to", "to_treat")
NUM_NODES = 6
triples_of_ids = st.lists(
    st.tuples(st.integers(0, NUM_NODES - 1), st.integers(0, len(RELATIONS) - 1), st.integers(0, NUM_NODES - 1))
)


def triples_in(graph: Graph) -> list[tuple[int, int, int]]:
    heads = np.repeat(np.arange(graph.num_nodes), np.diff(graph.offsets))
    return list(zip(heads.tolist(), graph.relation_ids.tolist(), graph.targets.tolist(), strict=True))


@given(triples_of_ids)
def test_the_graph_holds_each_different_triple_once_with_parallel_relations(rows: list[tuple[int, int, int]]) -> None:
    graph = Graph.from_triples(rows, NUM_NODES, RELATIONS)
    assert sorted(triples_in(graph)) == sorted(set(rows))
    assert graph.num_nodes == NUM_NODES
    assert graph.relation_counts.sum() == graph.num_edges
    dtypes = [str(array.dtype) for array in (graph.offsets, graph.targets, graph.relation_ids)]
    assert dtypes == ["int64", "int32", "int16"]
    for node in range(NUM_NODES):
        assert np.all(np.diff(graph.targets[graph.offsets[node] : graph.offsets[node + 1]]) >= 0)


@pytest.mark.parametrize("row", [(0, 0, NUM_NODES), (-1, 0, 0), (0, 3, 0)])
def test_an_id_outside_the_graph_is_refused(row: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="outside"):
        Graph.from_triples([row], NUM_NODES, RELATIONS)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    Graph.from_triples([(0, 0, 1), (1, 1, 2), (1, 2, 2), (4, 0, 0)], NUM_NODES, RELATIONS).save(tmp_path / "graph")
    return tmp_path / "graph"


def test_a_saved_graph_opens_mapped_from_disk_and_unchanged(saved: Path) -> None:
    graph = Graph.open(saved, verify=True)
    assert triples_in(graph) == [(0, 0, 1), (1, 1, 2), (1, 2, 2), (4, 0, 0)]
    assert graph.relations == RELATIONS
    assert isinstance(graph.targets.base, np.memmap)


def test_an_empty_graph_can_be_saved_and_opened(tmp_path: Path) -> None:
    Graph.from_triples([], 0, ()).save(tmp_path)
    assert Graph.open(tmp_path, verify=True).num_edges == 0


def test_a_file_of_another_size_is_noticed_at_once(saved: Path) -> None:
    with (saved / "targets.npy").open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(IntegrityError, match=r"targets\.npy"):
        Graph.open(saved)


def test_a_changed_byte_is_noticed_when_asked_to_verify(saved: Path) -> None:
    content = bytearray((saved / "targets.npy").read_bytes())
    content[-1] ^= 1
    (saved / "targets.npy").write_bytes(content)
    Graph.open(saved)
    with pytest.raises(IntegrityError, match="not the file that was saved"):
        Graph.open(saved, verify=True)


@pytest.mark.parametrize("manifest", [None, "", "[]", "{}", json.dumps({"format": 1}), json.dumps({"format": 99})])
def test_a_graph_without_a_sound_manifest_is_refused(saved: Path, manifest: str | None) -> None:
    if manifest is None:
        (saved / "manifest.json").unlink()
    else:
        (saved / "manifest.json").write_text(manifest, encoding="utf-8")
    with pytest.raises(IntegrityError, match="prepare the corpus again"):
        Graph.open(saved)
