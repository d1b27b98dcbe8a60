from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vrbot.nets.rgat import Normalisation, RelationalGraphAttention, RelationalGraphEncoder, group_edges

# torch_geometric compiles some of its functions with the old compiler when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
quick = settings(max_examples=40, deadline=None)


@dataclass(frozen=True)
class RandomGraph:
    """A random multigraph: parallel relations, repeated edges, loops and isolated nodes all occur."""

    num_nodes: int
    num_edges: int
    num_relations: int
    seed: int

    def features(self, size: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        return torch.randn(self.num_nodes, size, generator=generator)

    def edges(self) -> tuple[Tensor, Tensor, Tensor]:
        generator = torch.Generator().manual_seed(self.seed + 1)
        source, target = torch.randint(0, self.num_nodes, (2, self.num_edges), generator=generator)
        return source, target, torch.randint(0, self.num_relations, (self.num_edges,), generator=generator)


graphs = st.builds(
    RandomGraph,
    num_nodes=st.integers(1, 8),
    num_edges=st.integers(0, 25),
    num_relations=st.integers(1, 5),
    seed=st.integers(0, 10_000),
)


def both(
    graph: RandomGraph, num_heads: int, normalisation: Normalisation, sizes: tuple[int, int] = (5, 7)
) -> tuple[RelationalGraphAttention, Any]:
    """Our layer and the reference with the same weights."""
    from torch_geometric.nn import RGATConv

    torch.manual_seed(graph.seed)
    layer = RelationalGraphAttention(*sizes, graph.num_relations, num_heads, normalisation=normalisation)
    torch.nn.init.normal_(layer.bias)
    reference = RGATConv(*sizes, graph.num_relations, heads=num_heads, attention_mechanism=normalisation)
    pairs = {"weight": layer.weight, "q": layer.query, "k": layer.key, "bias": layer.bias}
    for name, parameter in pairs.items():
        getattr(reference, name).data.copy_(parameter.data)
    return layer, reference


@quick
@given(graphs, st.integers(1, 3), st.sampled_from(["across-relation", "within-relation"]))
def test_a_layer_equals_the_reference_in_value_and_gradient(
    graph: RandomGraph, num_heads: int, normalisation: Normalisation
):
    layer, reference = both(graph, num_heads, normalisation)
    source, target, relation = graph.edges()
    results = []
    for module, edges in ((layer, (source, target, relation)), (reference, (torch.stack([source, target]), relation))):
        features = graph.features(5).requires_grad_()
        output = module(features, *edges)
        direction = torch.linspace(-1, 1, output.numel()).view_as(output)
        names = ("weight", "query", "key", "bias") if module is layer else ("weight", "q", "k", "bias")
        wanted = [features, *(getattr(module, name) for name in names)]
        gradients = torch.autograd.grad((output * direction).sum(), wanted, allow_unused=True)
        results.append(
            [output, *(torch.zeros_like(w) if g is None else g for w, g in zip(wanted, gradients, strict=True))]
        )
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_a_layer_equals_the_reference_at_the_size_of_a_batch():
    graph = RandomGraph(num_nodes=300, num_edges=2_000, num_relations=13, seed=3)
    layer, reference = both(graph, 1, "across-relation", (128, 512))
    source, target, relation = graph.edges()
    expected = reference(graph.features(128), torch.stack([source, target]), relation)
    torch.testing.assert_close(layer(graph.features(128), source, target, relation), expected, atol=1e-5, rtol=1e-5)


@quick
@given(graphs, st.sampled_from(["across-relation", "within-relation"]))
def test_attention_sums_to_one_over_the_edges_it_is_normalised_over(graph: RandomGraph, normalisation: Normalisation):
    layer = RelationalGraphAttention(5, 7, graph.num_relations, 2, normalisation=normalisation)
    edges = group_edges(*graph.edges(), graph.num_nodes, graph.num_relations)
    attention = layer.attention(100 * graph.features(5), edges)  # large logits: no overflow
    group = edges.target if normalisation == "across-relation" else edges.pair
    totals = torch.zeros(graph.num_nodes * graph.num_relations, 2).index_add(0, group, attention)
    torch.testing.assert_close(totals[group], torch.ones(len(group), 2))


@quick
@given(graphs, graphs)
def test_graphs_encoded_together_equal_graphs_encoded_alone(left: RandomGraph, right: RandomGraph):
    torch.manual_seed(0)
    encoder = RelationalGraphEncoder((5, 6, 7), num_relations=5)
    parts = [encoder(graph.features(5), *graph.edges()) for graph in (left, right)]
    (a_source, a_target, a_relation), (b_source, b_target, b_relation) = left.edges(), right.edges()
    together = encoder(
        torch.cat([left.features(5), right.features(5)]),
        torch.cat([a_source, b_source + left.num_nodes]),
        torch.cat([a_target, b_target + left.num_nodes]),
        torch.cat([a_relation, b_relation]),
    )
    torch.testing.assert_close(together, torch.cat(parts))


@quick
@given(graphs)
def test_the_order_of_edges_does_not_matter_and_attention_keeps_it(graph: RandomGraph):
    torch.manual_seed(0)
    encoder = RelationalGraphEncoder((5, 6, 7), num_relations=5)
    shuffle = torch.randperm(graph.num_edges, generator=torch.Generator().manual_seed(graph.seed))
    straight = encoder.encode(graph.features(5), *graph.edges())
    shuffled = encoder.encode(graph.features(5), *(part[shuffle] for part in graph.edges()))
    torch.testing.assert_close(straight.nodes, shuffled.nodes)
    for before, after in zip(straight.attention, shuffled.attention, strict=True):
        assert before.shape == (graph.num_edges, 1)
        torch.testing.assert_close(before[shuffle], after)


def test_the_encoder_is_the_reference_with_self_loops_and_elu_between():
    graph = RandomGraph(num_nodes=6, num_edges=12, num_relations=4, seed=5)
    looped = RandomGraph(num_nodes=6, num_edges=12, num_relations=5, seed=5)
    encoder = RelationalGraphEncoder((5, 7, 7), num_relations=4)
    source, target, relation = graph.edges()
    nodes = torch.arange(6)
    edges = torch.stack([torch.cat([source, nodes]), torch.cat([target, nodes])])
    relations = torch.cat([relation, torch.full((6,), 4)])
    features = graph.features(5)
    expected = features
    for number, (layer, sizes) in enumerate(zip(encoder.layers, [(5, 7), (7, 7)], strict=True)):
        source_layer, reference = both(looped, 1, "across-relation", sizes)
        layer.load_state_dict(source_layer.state_dict())
        expected = reference(torch.nn.functional.elu(expected) if number else expected, edges, relations)
    torch.testing.assert_close(encoder(features, source, target, relation), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("num_nodes", [0, 1, 4])
@pytest.mark.parametrize("kind", ["layer", "encoder"])
def test_graphs_without_edges_or_nodes_give_finite_values_and_gradients(num_nodes: int, kind: str):
    module = (
        RelationalGraphAttention(5, 7, 3) if kind == "layer" else RelationalGraphEncoder((5, 6, 7), num_relations=3)
    )
    features = torch.randn(num_nodes, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    nothing = torch.empty(0, dtype=torch.long)
    output = module(features, nothing, nothing, nothing)
    assert output.shape == (num_nodes, 7)
    assert output.isfinite().all()
    for gradient in torch.autograd.grad(output.sum(), [features, *module.parameters()]):
        assert gradient.isfinite().all()
    if kind == "layer":
        assert isinstance(module, RelationalGraphAttention)
        assert torch.equal(output, module.bias.expand(num_nodes, 7))


def test_the_gradient_is_what_finite_differences_find():
    graph = RandomGraph(num_nodes=4, num_edges=9, num_relations=2, seed=2)
    layer = RelationalGraphAttention(3, 2, 2, 2).double()
    features = graph.features(3).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(x, *graph.edges()), (features,))


def test_results_and_gradients_repeat_to_the_last_bit():
    graph = RandomGraph(num_nodes=200, num_edges=1_500, num_relations=13, seed=9)
    encoder = RelationalGraphEncoder((16, 16, 32), num_relations=13)
    runs = []
    for _ in range(2):
        features = graph.features(16).requires_grad_()
        output = encoder(features, *graph.edges())
        runs.append([output, *torch.autograd.grad(output.square().sum(), [features, *encoder.parameters()])])
    assert all(torch.equal(first, second) for first, second in zip(*runs, strict=True))


def test_dropout_acts_between_layers_in_training_only():
    graph = RandomGraph(num_nodes=5, num_edges=9, num_relations=3, seed=4)
    encoder = RelationalGraphEncoder((5, 16, 7), num_relations=3, dropout=0.5)
    torch.manual_seed(1)
    first, second = (encoder(graph.features(5), *graph.edges()) for _ in range(2))
    assert not torch.equal(first, second)
    encoder.eval()
    first, second = (encoder(graph.features(5), *graph.edges()) for _ in range(2))
    assert torch.equal(first, second)
