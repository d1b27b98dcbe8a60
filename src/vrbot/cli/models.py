"""`vrbot models`: the systems there are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from vrbot.cli.printing import note, say_json, say_table

WORDS, ENTITIES, RELATIONS = 5_000, 500, 12
"""Of the nominal world in which parameters are counted when no corpus is given."""


@dataclass(frozen=True)
class ModelSummary:
    """One row of the list."""

    name: str
    idea: str
    labels: tuple[str, ...]
    parameters: int | None  # None where an encoder that nobody named, or an endpoint, has them


def models(
    recipe: Annotated[str, typer.Option(help="small or paper: the sizes to count parameters at.")] = "small",
    corpus: Annotated[Path | None, typer.Option(help="Count for this corpus's words and entities.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the systems: name, idea, the labels each can use, and its parameters.

    \b
    Example:
        vrbot models
        vrbot models --json --recipe paper --corpus corpora/clinic
    """
    found = summaries(recipe, corpus)
    if as_json:
        say_json([asdict(summary) for summary in found])
        return
    rows = [(each.name, each.parameters, ", ".join(each.labels) or "-", each.idea) for each in found]
    say_table(("name", "parameters", "labels", "idea"), rows)
    if corpus is None:
        note(f"parameters at {WORDS:,} words and {ENTITIES:,} entities; --corpus counts for a corpus of yours")


def summaries(recipe_name: str, corpus: Path | None) -> list[ModelSummary]:
    """The whole catalogue, in its order; what is asked over a wire comes last."""
    import torch

    from vrbot.baselines.catalogue import CATALOGUE, ENDPOINTS
    from vrbot.config import recipe
    from vrbot.dialogue.corpus import Corpus
    from vrbot.knowledge.graph import Graph
    from vrbot.model.learned import num_learned
    from vrbot.model.world import NGRAM_BUCKETS, World, world_of

    config = recipe(recipe_name)
    if corpus is None:
        relations = tuple(f"relation {number}" for number in range(RELATIONS))
        graph = Graph.from_triples([], ENTITIES, relations)
        counts, rarity = torch.zeros(ENTITIES, dtype=torch.long), torch.zeros(NGRAM_BUCKETS)
        world = World(WORDS, torch.arange(ENTITIES), graph, counts, rarity, torch.full((WORDS, 1), -1))
    else:
        world = world_of(Corpus.open(corpus))
    found = []
    for name, entry in CATALOGUE.items():
        without_encoder = entry.needs_encoder and config.pretrained.directory is None
        model = None if without_encoder else entry.build(config, world)
        parameters = None if model is None else num_learned(model)
        found.append(ModelSummary(name, entry.idea, entry.labels, parameters))
    return found + [ModelSummary(name, entry.idea, (), None) for name, entry in ENDPOINTS.items()]
