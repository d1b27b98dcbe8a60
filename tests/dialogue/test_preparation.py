"""Preparing a corpus: the same bytes whoever works, whole or not at all, refused when changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.dialogue.invented import SIZES, contents, invented_sessions, write_knowledge_files
from tests.real_data import real_data
from vrbot.cli.main import run
from vrbot.dialogue import reading
from vrbot.dialogue.batching import collate
from vrbot.dialogue.conversation import batch_from_conversation
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.formats import write_sessions
from vrbot.dialogue.preparation import PreparationSettings, prepare, split_of
from vrbot.dialogue.preparation_knowledge import KnowledgeFiles
from vrbot.dialogue.preparation_report import PreparationReport
from vrbot.dialogue.session import CATEGORIES, Action, Session, Turn
from vrbot.dialogue.vocabulary import SPECIALS, UNK
from vrbot.errors import IntegrityError, UsageError


@pytest.fixture(scope="module")
def made(source: Path, settings: PreparationSettings, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    out = tmp_path_factory.mktemp("corpora") / "corpus"
    return out, prepare(source, out, settings)


@pytest.fixture(scope="module")
def corpus(made: tuple[Path, PreparationReport]) -> Corpus:
    return Corpus.open(made[0])


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK_SESSIONS", 4)


@pytest.fixture(scope="module")
def dask_client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=False,
            dashboard_address=None,
            worker_dashboard_address=None,
            protocol="tcp",
            host="127.0.0.1",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.usefixtures("small_chunks")
def test_two_workers_write_the_bytes_of_one(
    source: Path, settings: PreparationSettings, made: tuple[Path, Any], tmp_path: Path
) -> None:
    prepare(source, tmp_path / "corpus", settings, workers=2)
    assert contents(tmp_path / "corpus") == contents(made[0])


@pytest.mark.usefixtures("small_chunks")
def test_a_dask_cluster_writes_the_bytes_of_one_worker(
    source: Path, settings: PreparationSettings, made: tuple[Path, Any], tmp_path: Path, dask_client: Any
) -> None:
    prepare(source, tmp_path / "corpus", settings, dask=dask_client)
    assert contents(tmp_path / "corpus") == contents(made[0])


def test_the_bytes_do_not_depend_on_the_order_of_hashes(source: Path, tmp_path: Path) -> None:
    files = write_knowledge_files(tmp_path)
    with files["entities"].open("a", encoding="utf-8") as table:
        table.writelines(f"{organ}管炎,disease\n" for organ in "食尿血胆肠泪")
    files["alias"].write_text('{"管炎": "头痛"}', encoding="utf-8")  # dropped for a reason that shows one of the names
    program = [sys.executable, "-c", "from vrbot.cli.main import main; main()"]
    made = []
    for seed in "123":
        options = [str(source), "--out", str(tmp_path / seed), *(f"--{kind}={path}" for kind, path in files.items())]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([*program, "prepare", *options], check=True, capture_output=True, env=environment)
        made.append(contents(tmp_path / seed))
    assert made[0] == made[1] == made[2]
    assert "管炎 is the general word of" in made[0]["manifest.json"].decode()


def test_the_sessions_come_back_as_they_were(corpus: Corpus) -> None:
    for seed, (split, size) in enumerate(SIZES.items()):
        sessions = invented_sessions(size, seed, split)
        assert corpus.sessions(split) == sessions
        assert [corpus.session(split, index) for index in range(size)] == sessions
        assert corpus.split(split).session_ids == tuple(session.id for session in sessions)


def test_labels_are_those_of_the_sessions(corpus: Corpus) -> None:
    split, names = corpus.split("train"), corpus.inventory.names
    labels = split.labels
    turns = [turn for session in corpus.sessions("train") for turn in session.turns]
    assert len(turns) == split.num_turns
    for i, turn in enumerate(turns):
        state = labels.state_entities[labels.state_offsets[i] : labels.state_offsets[i + 1]]
        assert (tuple(names[e] for e in state) if labels.state_known[i] else None) == turn.state
        action = turn.action or Action(None, None)
        keywords = labels.keyword_entities[labels.keyword_offsets[i] : labels.keyword_offsets[i + 1]]
        assert (tuple(names[e] for e in keywords) if labels.keywords_known[i] else None) == action.keywords
        assert (None if labels.category[i] < 0 else CATEGORIES[labels.category[i]]) == action.category


@pytest.mark.parametrize("split", SIZES)
def test_live_encoding_equals_the_prepared_arrays(corpus: Corpus, split: str) -> None:
    for index, session in enumerate(corpus.sessions(split)):
        live = batch_from_conversation(corpus.encoder, [(turn.patient, turn.physician) for turn in session.turns])
        prepared = collate(corpus.split(split), [index])
        for part in ("inputs", "targets"):
            one, other = vars(getattr(live, part)), vars(getattr(prepared, part))
            for name in [name for name in one if part == "inputs" or name.startswith("response")]:
                assert torch.equal(one[name], other[name]), name


def test_the_vocabulary_is_built_on_the_training_split_only(corpus: Corpus) -> None:
    for split in SIZES:
        tokens = corpus.split(split).texts.tokens
        assert tokens.min() >= UNK
        assert tokens.max() < len(corpus.vocabulary)
    words = set(np.unique(corpus.split("train").texts.tokens).tolist())
    rest = set(range(len(SPECIALS), len(corpus.vocabulary))) - words
    assert rest <= set(corpus.vocabulary.entity_word.tolist())


def test_a_flipped_byte_in_any_file_is_refused_by_name(made: tuple[Path, Any], tmp_path: Path) -> None:
    copy = tmp_path / "corpus"
    shutil.copytree(made[0], copy)
    names = sorted(contents(copy))
    assert {"manifest.json", "words.json", "graph/manifest.json", "train/tokens.npy"} <= set(names)
    for name in names:
        path = copy / name
        original = path.read_bytes()
        for place in {0, len(original) // 2, len(original) - 1}:
            path.write_bytes(original[:place] + bytes([original[place] ^ 1]) + original[place + 1 :])
            with pytest.raises(IntegrityError, match=name.replace(".", r"\.")):
                Corpus.open(copy)
        path.write_bytes(original)
    Corpus.open(copy)


@pytest.mark.parametrize("name", ["manifest.json", "words.json", "graph/targets.npy", "test/sessions.jsonl"])
def test_a_missing_or_shortened_file_is_refused_by_name(made: tuple[Path, Any], tmp_path: Path, name: str) -> None:
    copy = tmp_path / "corpus"
    shutil.copytree(made[0], copy)
    (copy / name).write_bytes((copy / name).read_bytes()[:-1])
    with pytest.raises(IntegrityError, match=name):
        Corpus.open(copy)
    (copy / name).unlink()
    with pytest.raises(IntegrityError, match=name):
        Corpus.open(copy)


def test_a_split_that_is_not_there_is_refused_with_the_choices(corpus: Corpus) -> None:
    with pytest.raises(UsageError, match="train, valid, test"):
        corpus.split("dev")


def test_like_takes_words_entities_and_graph_and_so_the_fingerprint(
    made: tuple[Path, Any], corpus: Corpus, tmp_path: Path, settings: PreparationSettings
) -> None:
    write_sessions(tmp_path / "more.jsonl", invented_sessions(50, 8, "more"))
    report = prepare(tmp_path / "more.jsonl", tmp_path / "more", PreparationSettings(like=made[0]))
    more = Corpus.open(tmp_path / "more")
    assert more.fingerprint == corpus.fingerprint == report.fingerprint
    assert more.vocabulary.words == corpus.vocabulary.words
    assert report.knowledge == made[1].knowledge
    with pytest.raises(UsageError, match="--like"):
        prepare(
            tmp_path / "more.jsonl", tmp_path / "m", PreparationSettings(knowledge=settings.knowledge, like=made[0])
        )


def test_another_vocabulary_has_another_fingerprint(
    source: Path, settings: PreparationSettings, corpus: Corpus, tmp_path: Path
) -> None:
    smaller = PreparationSettings(knowledge=settings.knowledge, vocabulary_size=20)
    report = prepare(source, tmp_path / "corpus", smaller)
    assert report.vocabulary == 20
    assert report.fingerprint != corpus.fingerprint


def test_entities_that_training_names_too_seldom_are_left_out_and_no_others(
    source: Path, settings: PreparationSettings, corpus: Corpus, tmp_path: Path
) -> None:
    texts = "\n".join(t for s in corpus.sessions("train") for turn in s.turns for t in (turn.patient, turn.physician))
    named = Counter(entity for mention in corpus.linker.find(texts) for entity in mention.entities)
    names, least = corpus.inventory.names, sorted(named.values())[len(named) // 2]
    kept = tuple(name for entity, name in enumerate(names) if named[entity] >= least)
    assert 0 < len(kept) < len(names)
    report = prepare(source, tmp_path / "fewer", replace(settings, minimum_mentions=least))
    fewer = Corpus.open(tmp_path / "fewer")
    assert fewer.inventory.names == kept
    assert report.knowledge.entities == len(kept)
    assert edges_by_name(fewer) == [edge for edge in edges_by_name(corpus) if {edge[0], edge[2]} <= {*kept}]
    surfaces = {form: {names[i] for i in ids} & {*kept} for form, ids in corpus.inventory.surfaces.items()}
    assert {form: {kept[i] for i in ids} for form, ids in fewer.inventory.surfaces.items()} == {
        form: meanings for form, meanings in surfaces.items() if meanings
    }
    with pytest.raises(UsageError, match="lower --minimum-mentions"):
        prepare(source, tmp_path / "none", replace(settings, minimum_mentions=10**6))


def test_entities_that_labels_pass_over_are_left_out_and_no_others(
    source: Path, settings: PreparationSettings, corpus: Corpus, tmp_path: Path
) -> None:
    named, held = Counter[int](), Counter[int]()
    for turn in (turn for session in corpus.sessions("train") for turn in session.turns):
        keywords = None if turn.action is None else turn.action.keywords
        for text, labels in ((turn.patient, turn.state), (turn.physician, keywords)):
            there = {entity for mention in corpus.linker.find(text) for entity in mention.entities}
            if labels is not None:
                named.update(there)
                held.update(there & {entity for label in labels for entity in corpus.inventory.ids_of(label)})
    shares = [(held[entity] + 1) / (named[entity] + 1) for entity in range(len(corpus.inventory))]
    least = sorted(shares)[len(shares) // 2]
    kept = tuple(name for name, share in zip(corpus.inventory.names, shares, strict=True) if share >= least)
    assert 0 < len(kept) < len(corpus.inventory)
    prepare(source, tmp_path / "fewer", replace(settings, minimum_labelled=least))
    assert Corpus.open(tmp_path / "fewer").inventory.names == kept


def edges_by_name(corpus: Corpus) -> list[tuple[str, str, str]]:
    graph, names = corpus.graph, corpus.inventory.names
    heads = np.repeat(np.arange(graph.num_nodes), np.diff(graph.offsets)).tolist()
    rows = zip(heads, graph.relation_ids.tolist(), graph.targets.tolist(), strict=True)
    return sorted((names[head], graph.relations[relation], names[tail]) for head, relation, tail in rows)


def test_one_file_is_divided_by_the_hash_of_the_ids(tmp_path: Path) -> None:
    sessions = invented_sessions(300)
    write_sessions(tmp_path / "all.jsonl", sessions)
    report = prepare(tmp_path / "all.jsonl", tmp_path / "corpus")
    found = Corpus.open(tmp_path / "corpus")
    for split in ("train", "valid", "test"):
        assert found.split(split).session_ids == tuple(s.id for s in sessions if split_of(s.id) == split)
    assert report.total.dialogues == 300
    assert 210 < report.splits["train"].dialogues < 270


def test_the_report_counts_coverage_and_unlinked_labels(source: Path, tmp_path: Path) -> None:
    turns = (Turn("我咳嗽", "好", ("咳嗽", "怪病"), Action(None, ("怪病",))), Turn("没有", "再见"))
    folder = tmp_path / "dialogues"
    shutil.copytree(source, folder)
    write_sessions(folder / "train.jsonl", [Session("one", turns), Session("two", (Turn("你好", ""),))])
    write_sessions(folder / "valid.jsonl", [])
    write_sessions(folder / "test.jsonl", [])
    report = prepare(
        folder, tmp_path / "corpus", PreparationSettings(knowledge=KnowledgeFiles(**write_knowledge_files(tmp_path)))
    )
    content = report.as_dict()
    assert content["coverage"] == {"dialogues": 50.0, "utterances": 20.0}
    assert content["unlinked_labels"] == {"labels": 2, "names": 1, "most_frequent": {"怪病": 2}}
    assert content["graph"] == {"triples": 6, "entities": 8, "relations": 3, "aliases_dropped": 0}
    assert (content["dialogues"], content["turns"]) == (2, 3)
    assert content["entities_named"] == {"1": 1, "5": 0}
    json.dumps(content, allow_nan=False)


def test_entities_are_counted_as_named_by_the_training_texts_alone(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "dialogues"
    shutil.copytree(source, folder)
    said = [Session(f"s{i}", (Turn("我咳嗽", "发烧吗" if i else "好"),)) for i in range(5)]
    write_sessions(folder / "train.jsonl", said)
    write_sessions(folder / "valid.jsonl", [Session("other", (Turn("头痛", "好"),))])
    graph = write_knowledge_files(tmp_path)["graph"]
    settings = PreparationSettings(knowledge=KnowledgeFiles(graph=graph))
    assert prepare(folder, tmp_path / "corpus", settings).named == {1: 2, 5: 1}
    command = ["prepare", str(folder), "--graph", str(graph), "--out", str(tmp_path / "by-command")]
    assert run(command) == 0
    few = capsys.readouterr().out
    assert "named in training: 2, at least 5 times: 1" in few
    assert "--minimum-mentions" not in few
    monkeypatch.setattr("vrbot.cli.prepare.MANY_ENTITIES", 2)
    assert run([*command, "--overwrite"]) == 0
    assert "--minimum-mentions 5 leaves it out" in capsys.readouterr().out


def test_real_dialogues_are_covered_by_their_lexicon(tmp_path: Path) -> None:
    data, graphs = real_data("meddg"), real_data("graphs/meddg")
    files = KnowledgeFiles(
        graph=graphs / "graph.csv",
        alias=graphs / "alias.json",
        lexicon=data / "lexicon.json",
        entities=data / "entities.csv",
    )
    report = prepare(data, tmp_path / "corpus", PreparationSettings(knowledge=files)).as_dict()
    assert report["coverage"]["dialogues"] >= 98
    assert report["graph"] | {"aliases_dropped": 0} == {
        "triples": 1240,
        "entities": 107,
        "relations": 12,
        "aliases_dropped": 0,
    }
    assert report["unlinked_labels"]["labels"] == 0
