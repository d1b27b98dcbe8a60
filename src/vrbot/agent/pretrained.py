"""A model in a folder of its own, with everything needed to talk to it; or the best model of a training run.

A saved model is a prepared corpus without dialogues (words, characters, inventory, graph and a manifest with the
SHA-256 of every file) and beside them config.yaml, model.json (what it is and how it was trained), model.safetensors,
world.safetensors (the counts it was built around), segmenter/ (where the segmenter has a model), encoder/ (where the
model reads with a pretrained encoder), and README.md.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import yaml

from vrbot.agent.card import Facts, model_card
from vrbot.baselines.catalogue import CATALOGUE
from vrbot.config import Config
from vrbot.dialogue.corpus import Corpus, copy_knowledge, fingerprint_of
from vrbot.dialogue.manifest import write_manifest
from vrbot.errors import DataError, IntegrityError, UsageError, VRBotError
from vrbot.files import sync_folder
from vrbot.model.learned import num_learned
from vrbot.model.weights import model_from_bytes, model_to_bytes, tensors_from_bytes, tensors_to_bytes
from vrbot.model.world import World, meanings_of, world_of
from vrbot.nets.encoder_folder import EncoderFolder
from vrbot.sealed import is_sealed, read_sealed

CONFIG, FACTS, WEIGHTS, WORLD, CARD, SEGMENTER, ENCODER = (
    "config.yaml",
    "model.json",
    "model.safetensors",
    "world.safetensors",
    "README.md",
    "segmenter",
    "encoder",
)
RUN, BEST, SCORES, CHOICES = "run.json", "best", "scores.json", "choices"
SCHEMA_VERSION = 1


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A model with its weights, ready for use, and all it was built from; `corpus` may be one without dialogues."""

    facts: Facts
    config: Config
    corpus: Corpus
    world: World
    model: torch.nn.Module


def load_pretrained(directory: Path | str, corpus: Path | str | None = None) -> Pretrained:
    """The model of a folder `save_pretrained` wrote, or the best model of a run; IntegrityError if a file has changed.

    `corpus` stands in for the corpus a run names, when that has moved.
    """
    directory = Path(directory)
    if (directory / FACTS).is_file():
        if corpus is not None:
            raise UsageError(f"{directory} holds its own words and graph: leave out the corpus")
        return _load_saved(directory)
    if (directory / RUN).is_file():
        return _load_run(directory, None if corpus is None else Path(corpus))
    raise UsageError(
        f"{directory} is neither a saved model nor a run: give a folder that `vrbot train` or `vrbot export` wrote"
    )


def save_pretrained(directory: Path | str, pretrained: Pretrained, *, overwrite: bool = False) -> None:
    """Writes a folder that needs nothing else, whole or not at all; a saved model there is replaced on request."""
    target = Path(os.path.abspath(directory))
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        if not overwrite:
            raise UsageError(f"{directory} is already there: choose another folder, or replace it with overwrite=True")
        if not (target / FACTS).is_file():
            raise UsageError(f"{directory} is not a saved model and will not be replaced: choose another folder")
    mark = secrets.token_hex(8)
    draft, former = target.with_name(f".{target.name}.{mark}.tmp"), target.with_name(f".{target.name}.{mark}.old")
    try:
        draft.mkdir(parents=True)
        _write(draft, pretrained)
        if target.exists():
            target.rename(former)
        draft.rename(target)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        if former.exists() and not target.exists():
            former.rename(target)
        if isinstance(error, OSError):
            raise VRBotError(f"{directory}: could not be saved: {error.strerror or error}") from error
        raise
    shutil.rmtree(former, ignore_errors=True)
    sync_folder(target.parent)


def _write(folder: Path, pretrained: Pretrained) -> None:
    corpus, world = pretrained.corpus, pretrained.world
    copy_knowledge(corpus, folder)
    settings = dict(corpus.manifest.settings)
    _, segmenter_model = corpus.segmenter_settings
    if segmenter_model is not None:
        shutil.copytree(segmenter_model, folder / SEGMENTER, copy_function=shutil.copyfile)
        settings["segmenter_model"] = SEGMENTER
    responses = torch.tensor(world.num_responses)
    counts = {"entity_counts": world.entity_counts, "rarity": world.rarity, "num_responses": responses}
    facts = {"schema": SCHEMA_VERSION, **asdict(pretrained.facts)}
    chosen = pretrained.config.model_dump()
    if CATALOGUE[pretrained.facts.model].needs_encoder:
        _copy_encoder(chosen["pretrained"]["directory"], folder / ENCODER)
        chosen["pretrained"]["directory"] = ENCODER
    config = yaml.safe_dump(chosen, sort_keys=False, allow_unicode=True)
    files = {
        CONFIG: config.encode(),
        FACTS: (json.dumps(facts, ensure_ascii=False, indent=1) + "\n").encode(),
        WEIGHTS: model_to_bytes(pretrained.model),
        WORLD: tensors_to_bytes(counts),
        CARD: model_card(pretrained.facts, pretrained.config, corpus).encode(),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    manifest = write_manifest(folder, settings, corpus.manifest.counts)
    if fingerprint_of(manifest) != corpus.fingerprint:
        raise IntegrityError(f"{corpus.directory}: has changed since it was opened: prepare the corpus again")


def _copy_encoder(source: str, target: Path) -> None:
    """The files an encoder is built from; `Corpus.open` verifies them as all others."""
    target.mkdir()
    for path in EncoderFolder.open(source).files:
        shutil.copyfile(path, target / path.name)


def _load_saved(directory: Path) -> Pretrained:
    corpus = Corpus.open(directory, saved_model=True)  # verifies every file
    facts = _facts_of(json.loads((directory / FACTS).read_text(encoding="utf-8")), directory / FACTS)
    settings = yaml.safe_load((directory / CONFIG).read_text(encoding="utf-8"))
    if (directory / ENCODER).is_dir():
        settings["pretrained"]["directory"] = str(directory / ENCODER)
    config = Config.parse(settings)
    counts = tensors_from_bytes((directory / WORLD).read_bytes())
    entity_words = torch.from_numpy(corpus.vocabulary.entity_word.astype("int64"))
    world = World(
        len(corpus.vocabulary),
        entity_words,
        corpus.graph,
        counts["entity_counts"],
        counts["rarity"],
        meanings_of(corpus.vocabulary),
        int(counts["num_responses"]),
        tuple(corpus.vocabulary.words),
        corpus.inventory.types,
    )
    model = _build(facts.model, config, world, (directory / WEIGHTS).read_bytes())
    return Pretrained(facts, config, corpus, world, model)


def _facts_of(content: dict[str, Any], path: Path) -> Facts:
    if content.pop("schema", None) != SCHEMA_VERSION:
        raise IntegrityError(f"{path}: is not of schema {SCHEMA_VERSION}: read it with the version that wrote it")
    return Facts(**content)


def _load_run(directory: Path, corpus_path: Path | None) -> Pretrained:
    described = read_sealed(directory)
    if not is_sealed(directory / BEST):
        raise UsageError(f"{directory} has no best model yet: train until its first validation")
    best = read_sealed(directory / BEST)
    run, judged = json.loads(described[RUN]), json.loads(best[SCORES])
    config = Config.parse(yaml.safe_load(described[CONFIG]))
    config = config.with_settings({f"decoding.{name}": value for name, value in judged.get(CHOICES, {}).items()})
    corpus = _corpus_of_run(directory, run, corpus_path)
    world = world_of(corpus)
    model = _build(run["model"], config, world, best[WEIGHTS])
    facts = Facts(
        model=run["model"],
        parameters=num_learned(model),
        seed=run["seed"],
        labels=_label_shares(run["model"], run["labels"]),
        measure=judged["measure"],
        step=judged["step"],
        scores=judged["scores"],
        version=version("vrbot"),
    )
    return Pretrained(facts, config, corpus, world, model)


def _corpus_of_run(directory: Path, run: Mapping[str, Any], given: Path | None) -> Corpus:
    path = Path(run["corpus"]) if given is None else given
    if not path.is_dir():
        way_out = "put it back, or say where it is now with --corpus"
        raise DataError(directory / RUN, None, "corpus", f"{path} is not there", way_out)
    corpus = Corpus.open(path)
    if corpus.fingerprint != run["corpus_fingerprint"]:
        raise UsageError(f"{path} has other words, entities or graph than the model of {directory} was trained on")
    return corpus


def _label_shares(model: str, shares: Mapping[str, float | None]) -> dict[str, float]:
    """The share of dialogues whose labels were used, for each kind of label the model can use."""
    action = shares["action"]
    category = action if shares.get("category") is None else shares["category"]
    used = {"state": shares["state"], "category": category, "keywords": action}
    return {kind: float(share) for kind, share in used.items() if kind in CATALOGUE[model].labels and share is not None}


def _build(name: str, config: Config, world: World, weights: bytes) -> torch.nn.Module:
    if name not in CATALOGUE:
        raise UsageError(f"{name!r} is not a model of this version; known: {', '.join(CATALOGUE)}")
    with torch.random.fork_rng(devices=[]):  # the first weights are overwritten; nobody's random numbers are used up
        model = CATALOGUE[name].build(config.with_settings({"network.embeddings_from": None}), world)
    model_from_bytes(model, weights)
    return model.eval()
