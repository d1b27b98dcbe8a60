"""Word vectors: trained on texts, and read from files."""

from __future__ import annotations

import gzip
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.evaluation import slow
from tests.evaluation.invented import texts
from vrbot.errors import DataError
from vrbot.evaluation.vectors import WordVectors, cooccurrences, positive_mutual_information, train_word_vectors
from vrbot.evaluation.word2vec import read_word2vec

WORDS = {"咳嗽": (1.0, -0.5, 0.25), "chest": (0.0, 2.0, 1e-3)}
HEADER = b"2 3\n"
BINARY = HEADER + b"".join(
    word.encode() + b" " + np.array(numbers, dtype="<f4").tobytes() + b"\n" for word, numbers in WORDS.items()
)
TEXT = HEADER + b"".join(f"{word} {' '.join(map(str, numbers))}\n".encode() for word, numbers in WORDS.items())


def invented_corpus(num_texts: int = 400) -> list[list[str]]:
    """Two topics whose words meet each other only within the topic, and more words than the dense way takes."""
    generator = np.random.default_rng(7)
    topics = [[f"甲{number}" for number in range(250)], [f"乙{number}" for number in range(250)]]
    return [[topics[text % 2][place] for place in generator.integers(250, size=20)] for text in range(num_texts)]


def mean_cosine(vectors: WordVectors, first: str, second: str) -> float:
    def rows(prefix: str) -> NDArray[np.float64]:
        places = [row for word, row in vectors.index.items() if word.startswith(prefix)]
        chosen = vectors.matrix[places].astype(np.float64)
        unit: NDArray[np.float64] = chosen / np.linalg.norm(chosen, axis=1, keepdims=True)
        return unit

    return float((rows(first) @ rows(second).T).mean())


@given(st.lists(texts, max_size=5), st.integers(1, 4))
def test_cooccurrences_equal_looking_at_every_pair_of_places(sentences: list[tuple[str, ...]], window: int) -> None:
    words = ["咳嗽", "多久", "fever", "1"]
    fast = cooccurrences(sentences, {word: number for number, word in enumerate(words)}, window)
    assert fast.toarray().tolist() == slow.cooccurrences(sentences, words, window)


def test_mutual_information_of_a_small_table_is_what_a_hand_computes() -> None:
    counts = cooccurrences([["a", "b"], ["a", "b"], ["b", "c"]], {"a": 0, "b": 1, "c": 2}, 1)
    smoothed = np.array([2.0, 3.0, 1.0]) ** 0.75
    shares = smoothed / smoothed.sum()
    expected = np.zeros((3, 3))
    expected[0, 1] = np.log(2 / (2 * shares[1]))
    expected[1, 0] = np.log(2 / (3 * shares[0]))
    expected[1, 2] = np.log(1 / (3 * shares[2]))
    expected[2, 1] = np.log(1 / (1 * shares[1]))
    np.testing.assert_allclose(positive_mutual_information(counts).toarray(), np.maximum(expected, 0))


def test_words_that_meet_less_than_chance_would_have_it_share_no_information() -> None:
    counts = cooccurrences([["a", "b"]] + [["a", "a"], ["b", "b"]] * 5, {"a": 0, "b": 1}, 1)
    assert counts.toarray().tolist() == [[10, 1], [1, 10]]
    weights = positive_mutual_information(counts).toarray()
    np.testing.assert_allclose(weights, [[np.log(20 / 11), 0], [0, np.log(20 / 11)]])


@pytest.mark.parametrize("num_texts", [20, 400], ids=["few words, dense", "many words, iterative"])
def test_words_of_one_topic_come_out_nearer_than_words_of_two(num_texts: int) -> None:
    vectors = train_word_vectors(invented_corpus(num_texts), dimensions=20, minimum_count=1)
    assert mean_cosine(vectors, "甲", "甲") > mean_cosine(vectors, "甲", "乙") + 0.1


def test_the_same_texts_give_the_same_vectors_to_the_last_bit() -> None:
    one, other = (train_word_vectors(invented_corpus(), dimensions=20, minimum_count=1) for _ in range(2))
    assert one.index == other.index
    np.testing.assert_array_equal(one.matrix, other.matrix)


def test_the_iterative_way_gives_the_cosines_of_the_whole_decomposition() -> None:
    texts_of_topics = invented_corpus()
    vectors = train_word_vectors(texts_of_topics, dimensions=10, minimum_count=1)
    weights = positive_mutual_information(cooccurrences(texts_of_topics, vectors.index, 5)).toarray()
    left, strengths, _ = np.linalg.svd(weights)
    whole = left[:, :10] * np.sqrt(strengths[:10])
    np.testing.assert_allclose(vectors.matrix @ vectors.matrix.T, whole @ whole.T, atol=1e-3)


@pytest.mark.parametrize("corpus", [[], [[]], [["咳嗽"]], [["咳嗽", "咳嗽"]], [["a", "b"]]])
def test_texts_too_small_to_learn_from_give_vectors_without_complaint(corpus: list[list[str]]) -> None:
    vectors = train_word_vectors(corpus, minimum_count=1)
    assert vectors.matrix.shape[0] == len(vectors.index)
    assert np.isfinite(vectors.matrix).all()


def test_rare_words_and_words_beyond_the_vocabulary_have_no_vector() -> None:
    corpus = [["a", "b", "a", "b", "a", "c"]]
    assert list(train_word_vectors(corpus, minimum_count=2).index) == ["a", "b"]
    assert list(train_word_vectors(corpus, minimum_count=1, largest_vocabulary=1).index) == ["a"]


@pytest.mark.parametrize("content", [TEXT, BINARY, TEXT[len(HEADER) :]], ids=["text", "binary", "text without header"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_form_of_file_gives_the_same_vectors(tmp_path: Path, content: bytes, packed: bool) -> None:
    path = tmp_path / ("vectors.gz" if packed else "vectors.bin")
    path.write_bytes(gzip.compress(content) if packed else content)
    vectors = read_word2vec(path)
    assert dict(vectors.index) == {"咳嗽": 0, "chest": 1}
    np.testing.assert_allclose(vectors.matrix, np.array(list(WORDS.values())), rtol=1e-6)


@pytest.mark.parametrize("content", [TEXT, BINARY])
def test_only_the_words_asked_for_are_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    vectors = read_word2vec(path, keep={"chest", "unheard"})
    assert dict(vectors.index) == {"chest": 0}
    assert vectors.find("Chest") == 0
    assert vectors.find("咳嗽") is None


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"", "header"),
        (b"not vectors\n", "header"),
        (b"1 0\nx\n", "header"),
        (b"1 99999999\nx\n", "header"),
        (b"2 3\na 1 2 3\nb 1 2\n", "vector"),
        (b"2 3\na 1 2 3\nb 1 2 x\n", "vector"),
        (b"1 2\na nan 1\n", "word 'a'"),
        (BINARY[:-3], "word 2"),
        (BINARY[:20], "word 1"),
        (BINARY.replace(b"2 3", b"3 3"), "word 3"),
        (TEXT.replace(b"2 3", b"3 3"), "header"),
    ],
)
def test_a_broken_file_is_refused_with_its_name_and_the_place(tmp_path: Path, content: bytes, place: str) -> None:
    path = tmp_path / "broken.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"broken\.txt.*{place}"):
        read_word2vec(path)


@pytest.mark.parametrize("name", ["absent.bin", "broken.gz"])
def test_a_file_that_cannot_be_opened_is_refused_with_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.gz").write_bytes(b"not gzip")
    with pytest.raises(DataError, match=name):
        read_word2vec(tmp_path / name)


@given(st.binary(max_size=60))
def test_no_bytes_make_the_reader_fail_in_another_way(content: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch, suppress(DataError):
        patch.setattr("vrbot.evaluation.word2vec._open", lambda _: BytesIO(content))
        read_word2vec("invented")
