"""Time of our relational attention against `torch_geometric.nn.RGATConv`: `python -m benchmarks.rgat [--json FILE]`."""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from vrbot.nets.rgat import RelationalGraphAttention, RelationalGraphEncoder

LAYERS = ((128, 128), (128, 512))


def disjoint_graphs(num_graphs: int, num_nodes: int, num_edges: int, num_relations: int) -> tuple[Tensor, ...]:
    """Random graphs side by side -> source, target, relation [num_graphs * num_edges]."""
    generator = torch.Generator().manual_seed(0)
    size = (num_graphs * num_edges,)
    first_node = torch.arange(num_graphs).repeat_interleave(num_edges) * num_nodes
    source, target = (torch.randint(0, num_nodes, size, generator=generator) + first_node for _ in range(2))
    return source, target, torch.randint(0, num_relations, size, generator=generator)


def milliseconds(run: Callable[[], object], repeats: int) -> float:
    """Median time of one run, after one to warm up."""
    run()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return 1_000 * median(times)


def forward_and_both(
    module: torch.nn.Module, features: Tensor, edges: tuple[Any, ...], repeats: int
) -> dict[str, float]:
    """Milliseconds of the forward pass without gradients, and of forward and backward."""

    def forward() -> None:
        with torch.no_grad():
            module(features, *edges)

    def both() -> None:
        torch.autograd.grad(module(features, *edges).sum(), list(module.parameters()), allow_unused=True)

    return {"forward_ms": milliseconds(forward, repeats), "forward_backward_ms": milliseconds(both, repeats)}


def compare(args: argparse.Namespace) -> dict[str, Any]:
    """Per layer (without self-loops, which the reference does not add), then the whole encoder."""
    from torch_geometric.nn import RGATConv

    source, target, relation = disjoint_graphs(args.graphs, args.nodes, args.edges, args.relations)
    layers = []
    for input_size, output_size in LAYERS:
        features = torch.randn(args.graphs * args.nodes, input_size)
        ours = RelationalGraphAttention(input_size, output_size, args.relations)
        theirs = RGATConv(input_size, output_size, args.relations)
        fast = forward_and_both(ours, features, (source, target, relation), args.repeats)
        slow = forward_and_both(theirs, features, (torch.stack([source, target]), relation), args.reference_repeats)
        ratios = {f"{key.removesuffix('_ms')}_ratio": slow[key] / fast[key] for key in fast}
        layers.append({"sizes": [input_size, output_size], "vrbot": fast, "rgat_conv": slow, **ratios})
    encoder = RelationalGraphEncoder((128, 128, 512), num_relations=args.relations)
    features = torch.randn(args.graphs * args.nodes, 128)
    return {
        "machine": {"processor": platform.machine(), "torch": torch.__version__, "threads": torch.get_num_threads()},
        "graphs": args.graphs,
        "nodes": args.nodes,
        "edges": args.edges,
        "relations": args.relations,
        "layers": layers,
        "encoder_128_128_512_with_self_loops": forward_and_both(
            encoder, features, (source, target, relation), args.repeats
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=16)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--edges", type=int, default=300, help="edges of one graph")
    parser.add_argument("--relations", type=int, default=13)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--reference-repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    text = json.dumps(compare(args), indent=2)
    if args.json is not None:
        args.json.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
