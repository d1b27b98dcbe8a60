"""Corpora cut from a corpus keep its words and graph, and hold exactly what they should."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from vrbot.dialogue.corpus import Corpus
from vrbot.errors import ConfigError, UsageError
from vrbot.experiments.plans import plan_of
from vrbot.experiments.runner import check_corpus
from vrbot.experiments.selections import WHOLE, HeldOut, TrainShare, cut_corpus, held_out_value
from vrbot.experiments.smoke import smoke_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus.open(smoke_corpus(tmp_path_factory.mktemp("larger"), dialogues=60))


def test_a_smaller_share_lies_inside_a_larger_and_leaves_the_test_split_alone(corpus: Corpus, tmp_path: Path) -> None:
    parts = [Corpus.open(cut_corpus(corpus, TrainShare(share), 1, tmp_path)) for share in (0.1, 0.5)]
    smaller, larger = (set(part.split("train").session_ids) for part in parts)
    assert (len(smaller), len(larger)) == (5, 24)
    assert smaller < larger < set(corpus.split("train").session_ids)
    for part in parts:
        assert part.fingerprint == corpus.fingerprint
        assert part.split("test").session_ids == corpus.split("test").session_ids
    other = Corpus.open(cut_corpus(corpus, TrainShare(0.5), 2, tmp_path))
    assert set(other.split("train").session_ids) != larger
    assert cut_corpus(corpus, WHOLE, 1, tmp_path) == corpus.directory


def test_a_held_out_department_is_tested_and_never_trained_on(corpus: Corpus, tmp_path: Path) -> None:
    field, value = held_out_value(corpus, ("department", "diagnosis"))
    counts = Counter(session.extra["department"] for session in corpus.sessions("test"))
    assert field == "department"
    assert counts[value] == max(counts.values())
    seen, unseen = (Corpus.open(cut_corpus(corpus, HeldOut(flag), 1, tmp_path)) for flag in (True, False))

    def departments(part: Corpus, split: str) -> list[str]:
        return [str(session.extra["department"]) for session in part.sessions(split)]

    assert value not in departments(unseen, "train") + departments(unseen, "valid")
    assert value in departments(seen, "train")
    assert set(departments(seen, "test")) == set(departments(unseen, "test")) == {value}
    assert seen.split("test").session_ids == unseen.split("test").session_ids
    assert seen.split("train").num_sessions == unseen.split("train").num_sessions


def test_a_corpus_without_departments_is_refused_with_what_it_needs(corpus: Corpus) -> None:
    with pytest.raises(UsageError, match="no ward beside its dialogues: to hold one out, prepare dialogues"):
        held_out_value(corpus, ("ward",))
    check_corpus(plan_of("transfer"), corpus)


def test_no_share_of_nothing() -> None:
    with pytest.raises(ConfigError, match="got 0"):
        TrainShare(0)
