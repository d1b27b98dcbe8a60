"""The trivial systems: what each says, that none of them looks ahead, and that they beat chance."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from tests.model.tiny import entity_id, sessions
from vrbot.baselines.references.answers import Experience, Phrasebook, Reference, learnt_keywords
from vrbot.baselines.references.catalogue import REFERENCES
from vrbot.baselines.references.histories import CharacterFeatures, said_before, word_counts
from vrbot.baselines.references.linear import best_threshold
from vrbot.baselines.references.retrieval import BestMatch25
from vrbot.dialogue.conversation import encode_conversation
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.evaluation.scorecard import Scorecard, scorecard
from vrbot.evaluation.trivial import measure_references

PATIENT = ["咳嗽，头痛", "发烧三天", "怎么办"]
PHYSICIAN = ["有没有乏力？", "考虑流感。", "可以用退热贴。"]


@pytest.fixture(scope="module")
def references(corpus: Corpus) -> dict[str, Reference]:
    experience = Experience(corpus)
    return {name: entry.learn(experience) for name, entry in REFERENCES.items()}


@pytest.fixture(scope="module")
def cards(corpus: Corpus) -> dict[str, Scorecard]:
    return {name: scorecard(measured.turns) for name, measured in measure_references(corpus, "test")}


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_an_answer_does_not_change_with_its_own_reference_or_anything_later(
    name: str, turn: int, references: dict[str, Reference], corpus: Corpus
) -> None:
    changed_patient = PATIENT[: turn + 1] + ["腹泻"] * (2 - turn)
    changed_physician = [*PHYSICIAN[:turn], *["止咳糖浆，胸片"] * (3 - turn)]
    real = encode_conversation(corpus.encoder, list(zip(PATIENT, PHYSICIAN, strict=True)))
    changed = encode_conversation(corpus.encoder, list(zip(changed_patient, changed_physician, strict=True)))
    system = references[name]
    assert system.answer(real)[: turn + 1] == system.answer(changed)[: turn + 1]


@pytest.mark.parametrize("name", REFERENCES)
def test_an_answer_does_not_change_with_the_labels(name: str, references: dict[str, Reference], corpus: Corpus) -> None:
    split = corpus.split("test")
    session = sessions()[0]
    unlabelled = encode_conversation(corpus.encoder, [(turn.patient, turn.physician) for turn in session.turns])
    assert references[name].answer(unlabelled) == references[name].answer(split)[: len(session.turns)]


@pytest.mark.parametrize("name", ["copy-the-state", "linear-action", "retrieval"])
def test_systems_that_look_at_the_history_see_it(name: str, references: dict[str, Reference], corpus: Corpus) -> None:
    answers = [
        references[name].answer(encode_conversation(corpus.encoder, [(said, "")]))[0]
        for said in ("怎么办，发烧，头痛", "胸片说是气管炎", "你好")
    ]
    assert len({answer.text for answer in answers}) > 1


def test_learning_twice_gives_the_same_answers(references: dict[str, Reference], corpus: Corpus) -> None:
    for name, entry in REFERENCES.items():
        again = entry.learn(Experience(corpus))
        assert again.answer(corpus.split("test")) == references[name].answer(corpus.split("test"))


def test_those_that_learn_beat_those_that_do_not(cards: dict[str, Scorecard]) -> None:
    floor = cards["most-frequent-keyword"].action_f1
    assert floor is not None
    assert floor > 0
    for name in ("linear-action", "retrieval"):
        found = cards[name]
        assert found.action_f1 is not None
        assert found.action_f1 > floor + 10
        assert found.micro_f1 is not None
    assert cards["copy-the-state"].state_f1 is not None
    assert cards["copy-the-state"].state_f1 > 75


def test_the_most_frequent_reply_is_counted_over_the_training_split(
    references: dict[str, Reference], corpus: Corpus
) -> None:
    counts = Counter(turn.physician for session in sessions() for turn in session.turns if turn.physician)
    wanted = min(counts, key=lambda text: (-counts[text], text))
    assert references["most-frequent-reply"].answer(corpus.split("test"))[0].text == wanted


def test_a_phrasebook_says_names_where_nobody_ever_said_them_together() -> None:
    book = Phrasebook([("咳嗽吗？", (0,)), ("咳嗽吗？", (0,)), ("有咳嗽？", (0,)), ("", ())], ("咳嗽", "发烧"))
    assert book.say([0]) == "咳嗽吗？"
    assert book.say([1, 0, 1]) == "发烧, 咳嗽"
    assert book.say([]) == ""


def test_keywords_without_a_label_are_what_the_reply_names(corpus: Corpus) -> None:
    split = encode_conversation(corpus.encoder, [("头痛", "发烧吗？咳嗽吗？发烧？")])
    assert learnt_keywords(split) == [(entity_id(corpus, "发烧"), entity_id(corpus, "咳嗽"))]


def test_a_history_holds_what_was_said_before_the_reply_and_nothing_else(corpus: Corpus) -> None:
    split = corpus.split("test")
    said = said_before(split).toarray()
    assert said.shape == (split.num_turns, 2 * split.num_turns)
    assert said[2].nonzero()[0].tolist() == [0, 1, 2, 3, 4]
    first_of_second = int(split.session_offsets[1])
    assert said[first_of_second].nonzero()[0].tolist() == [2 * first_of_second]
    assert said_before(split, last=2).toarray()[2].nonzero()[0].tolist() == [3, 4]
    words = word_counts(split, len(corpus.vocabulary)).toarray()
    offsets = split.texts.utterance_offsets
    assert words[1].sum() == offsets[3] - offsets[0]


def test_character_features_equal_those_computed_word_by_word(corpus: Corpus) -> None:
    split = corpus.split("test")
    features = CharacterFeatures(split, len(corpus.characters), minimum_count=1)
    found = features.of(split).toarray()
    texts, offsets = split.texts.characters.tolist(), split.texts.character_offsets.tolist()

    def grams(turn: int, first: int) -> Counter[tuple[int, ...]]:
        counts: Counter[tuple[int, ...]] = Counter()
        for text in range(2 * first, 2 * turn + 1):
            characters = texts[offsets[text] : offsets[text + 1]]
            for size in (1, 2, 3):
                counts.update(tuple(characters[i : i + size]) for i in range(len(characters) - size + 1))
        return counts

    firsts = np.repeat(split.session_offsets[:-1], split.turns_per_session).tolist()
    histories = [grams(turn, first) for turn, first in enumerate(firsts)]
    frequency = Counter(gram for history in histories for gram in history)
    for row, history in zip(found, histories, strict=True):
        weights = [
            (1 + math.log(count)) * (math.log((1 + len(histories)) / (1 + frequency[gram])) + 1)
            for gram, count in history.items()
        ]
        length = math.sqrt(sum(weight**2 for weight in weights))
        wanted = sorted(weight / length for weight in weights)
        np.testing.assert_allclose(np.sort(row[row > 0]), wanted, rtol=1e-4)


def test_the_threshold_is_not_the_most_frequent_keywords_alone() -> None:
    """Over all keywords 0.5 would be best: it names the frequent one rightly and little else."""
    wanted = np.zeros((40, 3), dtype=np.float32)
    wanted[:30, 0], wanted[30:36, 1], wanted[34:40, 2] = 1, 1, 1
    scores = np.full((40, 3), 0.05, dtype=np.float32)
    scores[:, 0] = np.where(wanted[:, 0] > 0, 0.6, 0.3)
    scores[30:36, 1], scores[34:40, 2], scores[:6, 1:] = 0.2, 0.2, 0.2
    assert 0.05 <= best_threshold(scores, wanted) < 0.2
    assert 0.3 <= best_threshold(scores[:, :1], wanted[:, :1]) < 0.6
    assert best_threshold(scores[:, :0], wanted[:, :0]) > 0


def test_the_best_threshold_is_the_one_with_the_best_f1() -> None:
    scores = np.array([[0.9, 0.2], [0.6, 0.4], [0.3, 0.1]], dtype=np.float32)
    wanted = np.array([[1, 0], [1, 0], [0, 0]], dtype=np.float32)
    assert 0.4 <= best_threshold(scores, wanted) < 0.6


def test_bm25_equals_its_formula() -> None:
    documents = np.array([[2, 1, 0], [0, 1, 1], [1, 0, 3]], dtype=np.float32)
    queries = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 2, 0]], dtype=np.float32)
    lengths, mean = documents.sum(axis=1), documents.sum(axis=1).mean()
    wanted = []
    for query in queries:
        scores = []
        for document, length in zip(documents, lengths, strict=True):
            score = 0.0
            for word, asked in enumerate(query):
                holding = (documents[:, word] > 0).sum()
                rarity = math.log(1 + (3 - holding + 0.5) / (holding + 0.5))
                saturated = document[word] * 2.2 / (document[word] + 1.2 * (0.25 + 0.75 * length / mean))
                score += asked * rarity * saturated
            scores.append(score)
        wanted.append(int(np.argmax(scores)))
    assert BestMatch25(documents).nearest(queries).tolist() == wanted


def test_an_unknown_reference_is_refused(corpus: Corpus) -> None:
    with pytest.raises(UsageError, match="most-frequent-reply"):
        next(measure_references(corpus, "test", ["oracle"]))
