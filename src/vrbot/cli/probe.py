"""`vrbot probe`: do the latent states and actions of a run work?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from vrbot.cli.printing import say, say_table
from vrbot.evaluation.probing import probe as probe_model
from vrbot.evaluation.scorecard import Value
from vrbot.evaluation.systems import open_system
from vrbot.files import atomic_write

CHAIN: Mapping[str, tuple[str, ...]] = {
    "divergences, nats a turn": (
        "kl_state",
        "kl_category",
        "kl_keywords",
        "kl_action",
        "reconstruction",
        "reconstruction_state",
        "reconstruction_action",
    ),
    "activity": (
        "keywords_per_turn",
        "inference_keywords_per_turn",
        "gold_keywords_per_turn",
        "none_share",
        "inference_none_share",
        "gold_none_share",
        "none_offset",
    ),
    "prior networks": ("state_f1", "state_new_f1", "action_f1", "action_f1_without_most_frequent", "category_accuracy",
                       "category_macro_f1", "majority_category_share"),
    "inference networks": ("inference_state_f1", "inference_state_new_f1", "inference_action_f1",
                           "inference_action_f1_without_most_frequent", "inference_category_accuracy",
                           "inference_category_macro_f1"),
    "obedience": ("obedience", "obedience_to_given_keywords", "changed_by_another_action", "num_exchanged"),
    "perplexity": ("perplexity_prior_action", "perplexity_inference_action", "perplexity_gold_action"),
    "replies": ("micro_f1", "micro_f1_without_most_frequent", "bleu_2"),
}  # fmt: skip
"""The numbers in the order in which a model can break."""


def probe(
    run: Annotated[Path, typer.Argument(help="The folder of a run, or of a saved model.")],
    corpus: Annotated[Path | None, typer.Option(help="Probe on this corpus [the one it learnt from].")] = None,
    split: Annotated[str, typer.Option(help="Which split.")] = "valid",
    beam: Annotated[int, typer.Option(min=1, help="Width of the search; 1 is greedy.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the numbers here as JSON.")] = None,
) -> None:
    """Judge a run by the whole chain: divergences, states, actions, obedience, perplexity, replies.

    Obedience is the micro-F1 of replies under the gold action; beside it the share of replies that change when
    their action is replaced by another turn's.

    \b
    Example:
        vrbot probe runs/first --split test --json probe.json
    """
    system = open_system(run, corpus)
    decoding = system.config.decoding.model_copy(update={"beam": beam})
    found = probe_model(system.model, system.corpus, split, system.config, decoding)
    say(f"{run} ({system.kind}) on {system.corpus.directory} {split}: {found['num_turns']:,} turns")
    for title, names in CHAIN.items():
        rows = [(name, found[name]) for name in names if name in found]
        if rows:
            say()
            say_table((title, "value"), rows)
    if json_file is not None:
        _write_json(json_file, {"run": str(run), "model": system.kind, "split": split, "beam": beam, **found})


def _write_json(path: Path, content: Mapping[str, Value]) -> None:
    with atomic_write(path) as file:
        json.dump(content, file, ensure_ascii=False, indent=2, allow_nan=False)
        file.write("\n")
