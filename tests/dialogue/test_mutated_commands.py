"""`vrbot prepare` on mutated files: a corpus, or one line and nothing half-written."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.dialogue.invented import invented_sessions, write_knowledge_files
from tests.dialogue_formats.test_fuzz import mutate_bytes
from vrbot.cli.main import run
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.formats import write_sessions

MUTANTS = 12
"""Of each file; the readers themselves are tried with thousands."""

FILES = ("train.jsonl", "valid.jsonl", "graph.csv", "alias.json", "lexicon.json", "entities.csv")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small corpus and its knowledge."""
    folder = tmp_path_factory.mktemp("sound")
    for seed, split in enumerate(("train", "valid", "test")):
        write_sessions(folder / f"{split}.jsonl", invented_sessions(4, seed, split))
    write_knowledge_files(folder)
    return folder


@pytest.mark.parametrize("mutated", FILES)
def test_a_mutated_file_gives_a_corpus_or_one_line_and_nothing_half_written(
    mutated: str, sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    shutil.copytree(sound, folder)
    knowledge = [f"--{kind}={folder / kind}.{end}" for kind, end in (("graph", "csv"), ("entities", "csv"))]
    knowledge += [f"--{kind}={folder / kind}.json" for kind in ("alias", "lexicon")]
    chance = random.Random(mutated)
    ends: Counter[int] = Counter()
    for _ in range(MUTANTS):
        (folder / mutated).write_bytes(mutate_bytes((sound / mutated).read_bytes(), chance))
        code = run(["prepare", str(folder), "--format", "canonical", "--out", str(out), *knowledge])
        complaint = capsys.readouterr().err
        ends[code] += 1
        if code == 0:
            assert complaint == ""
            Corpus.open(out)
            shutil.rmtree(out)
        else:
            assert complaint.startswith(f"vrbot: error: {folder / mutated}")
            assert complaint.count("\n") == 1
        assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert ends.keys() <= {0, 1, 2}
    assert ends[1] > 0
