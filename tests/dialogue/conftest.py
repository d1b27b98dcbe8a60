"""Files that several tests prepare a corpus from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dialogue.invented import SIZES, invented_sessions, write_knowledge_files
from vrbot.dialogue.formats import write_sessions
from vrbot.dialogue.preparation import PreparationSettings
from vrbot.dialogue.preparation_knowledge import KnowledgeFiles


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dialogues")
    for seed, (split, size) in enumerate(SIZES.items()):
        write_sessions(folder / f"{split}.jsonl", invented_sessions(size, seed, split))
    return folder


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> PreparationSettings:
    files = write_knowledge_files(tmp_path_factory.mktemp("knowledge"))
    return PreparationSettings(knowledge=KnowledgeFiles(**files))
