"""How fast retrieval and linking are, and that neither grows with the graph.

    python -m benchmarks.retrieval --json FILE [--graph graph.csv] [--text dialogues.jsonl] [--sizes N ...]

Without `--graph` the real KaMed graph beside the checkout (or at VRBOT_DATA) is used where it is at hand.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vrbot.knowledge.assembly import assemble_knowledge
from vrbot.knowledge.graph import Graph
from vrbot.knowledge.linking import Linker
from vrbot.knowledge.retrieval import retrieve_subgraph
from vrbot.knowledge.triples import read_triples

LIMIT, HOPS, NUM_QUERIES = 50, 2, 400
EDGES_PER_NODE, NUM_RELATIONS = 10, 12
REPOSITORY = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--graph", type=Path, default=_real("graphs/kamed/graph.csv"))
    parser.add_argument("--text", type=Path, default=_real("meddg/train.jsonl"))
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    options = parser.parse_args(arguments)
    results: dict[str, Any] = {"limit": LIMIT, "hops": HOPS, "num_queries": NUM_QUERIES}
    if options.graph.exists():
        knowledge = assemble_knowledge(read_triples(options.graph))
        graph = Graph.from_triples(knowledge.triples, len(knowledge.inventory), knowledge.relations)
        results["real_graph"] = {"nodes": graph.num_nodes, "triples": graph.num_edges, **query_times(graph)}
        if options.text.exists():
            results["linking"] = linking_speed(Linker(knowledge.inventory.surfaces), options.text)
    results["generated"] = [generated_graph_times(size) for size in options.sizes]
    text = json.dumps(results, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")


def query_times(graph: Graph) -> dict[str, float]:
    """Milliseconds of one capped query with one to five seeds that have edges, each seed as likely as its degree."""
    generator = np.random.default_rng(0)
    queries = [_seeds_by_degree(graph, generator) for _ in range(NUM_QUERIES)]
    sizes = [retrieve_subgraph(graph, seeds, HOPS, LIMIT).num_nodes for seeds in queries[:50]]
    seconds, processor_seconds = [], []
    for seeds in queries:
        wall, processor = time.perf_counter(), time.process_time()
        retrieve_subgraph(graph, seeds, HOPS, LIMIT)
        seconds.append(time.perf_counter() - wall)
        processor_seconds.append(time.process_time() - processor)
    return {
        "median_ms": round(1000 * float(np.median(seconds)), 3),
        "p99_ms": round(1000 * float(np.quantile(seconds, 0.99)), 3),
        "median_processor_ms": round(1000 * float(np.median(processor_seconds)), 3),
        "mean_nodes": float(np.mean(sizes)),
    }


def generated_graph_times(num_nodes: int) -> dict[str, float]:
    """Build a graph with skewed degrees, save it, open it by memory map, and ask it."""
    with tempfile.TemporaryDirectory() as folder:
        triples = skewed_triples(num_nodes, np.random.default_rng(1))
        graph = Graph.from_triples(triples, num_nodes, [f"relation_{number}" for number in range(NUM_RELATIONS)])
        graph.save(folder)
        largest = int(np.diff(graph.offsets).max())
        del graph, triples
        opening = _seconds(lambda: Graph.open(folder))
        graph = Graph.open(folder)
        return {
            "nodes": graph.num_nodes,
            "triples": graph.num_edges,
            "largest_degree": largest,
            "open_ms": round(1000 * opening, 3),
            **query_times(graph),
        }


def skewed_triples(num_nodes: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Triples whose ends are drawn with weight rank^-0.75, half of them the other half turned round: int64 [E, 3]."""
    half = num_nodes * EDGES_PER_NODE // 2
    cumulative = np.cumsum(np.arange(1, num_nodes + 1, dtype=np.float64) ** -0.75)
    heads, tails = (np.searchsorted(cumulative, generator.random(half) * cumulative[-1]) for _ in range(2))
    names = generator.permutation(num_nodes)  # so that hubs are not the lowest ids
    relations = np.minimum(generator.geometric(0.3, half) - 1, NUM_RELATIONS // 2 - 1) * 2
    forth = np.stack((names[heads], relations, names[tails]), axis=1)
    return np.concatenate((forth, np.stack((forth[:, 2], relations + 1, forth[:, 0]), axis=1)))


def linking_speed(linker: Linker, path: Path) -> dict[str, float]:
    """Megabytes a second, utterance by utterance and in one long text."""
    sessions = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    turns = [turn for session in sessions for turn in session["turns"]]
    utterances = [text for turn in turns for text in (turn["patient"], turn["physician"])]
    whole = "\n".join(utterances)
    megabytes = len(whole.encode()) / 1e6
    linker.find(whole)
    by_utterance = min(_seconds(lambda: [linker.find(text) for text in utterances]) for _ in range(3))
    at_once = min(_seconds(lambda: linker.find(whole)) for _ in range(3))
    return {
        "megabytes": round(megabytes, 2),
        "mentions": len(linker.find(whole)),
        "utterances_mb_per_second": round(megabytes / by_utterance, 1),
        "one_text_mb_per_second": round(megabytes / at_once, 1),
    }


def _seeds_by_degree(graph: Graph, generator: np.random.Generator) -> list[int]:
    """The ends of random edges: busy nodes are asked for more often, as in conversations."""
    edges = generator.integers(0, graph.num_edges, generator.integers(1, 6))
    return [int(node) for node in graph.targets[edges]]


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _real(name: str) -> Path:
    return Path(os.environ.get("VRBOT_DATA") or REPOSITORY.parent / "shared" / "data") / name


if __name__ == "__main__":
    main()
