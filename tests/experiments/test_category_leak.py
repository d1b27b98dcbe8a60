"""The corpus that tells categories differs in what the patient says only, and its plan says what its rows are."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.invented import AtOnce
from vrbot.dialogue.batching import collate
from vrbot.dialogue.corpus import SPLITS, Corpus
from vrbot.dialogue.formats import write_sessions
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.dialogue.session import CATEGORIES, Action, Session, Turn
from vrbot.errors import UsageError
from vrbot.evaluation.recorded import recorded_turns
from vrbot.experiments import selections
from vrbot.experiments.folder import ExperimentFolder, Job
from vrbot.experiments.plans import SMOKE_SETTINGS, plan_of
from vrbot.experiments.report import make_report
from vrbot.experiments.runner import begin, jobs_of, run_experiment
from vrbot.experiments.selections import WHOLE, ToldCategory, cut_corpus
from vrbot.experiments.told_category import MARKERS, write_told_corpus
from vrbot.files import sha256_of
from vrbot.training.description import corpus_digest

PLAN = plan_of("category-leak")
TINY = dataclasses.replace(PLAN, settings={**SMOKE_SETTINGS, "training.max_epochs": 1}, seeds=(1,))
TOLD_ROWS = ("seq2seq-told-category", "vrbot-told-category")
CONTEXT_ARRAYS = {"tokens", "utterance_offsets", "characters", "character_offsets"}


class TinyAtOnce(AtOnce):
    plan = TINY


def hashes(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256_of(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def prepared(folder: Path, sessions: list[Session], like: Path) -> Corpus:
    """These sessions as each of the splits of a corpus."""
    source = folder / "source"
    source.mkdir()
    for split in SPLITS:
        named = [dataclasses.replace(session, id=f"{split}-{session.id}") for session in sessions]
        write_sessions(source / f"{split}.jsonl", named)
    prepare(source, folder / "corpus", PreparationSettings(format="canonical", like=like))
    return Corpus.open(folder / "corpus")


def spoken(category: str | None, patient: str = "I cough", physician: str = "rest") -> Turn:
    return Turn(patient, physician, (), None if category is None else Action(category, ()))


@pytest.fixture(scope="module")
def source(clinic: Path) -> Corpus:
    return Corpus.open(clinic)


@pytest.fixture(scope="module")
def told(source: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    out = tmp_path_factory.mktemp("told") / "told"
    write_told_corpus(source, out)
    return Corpus.open(out)


@pytest.fixture(scope="module")
def gaps(clinic: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Corpus, Corpus]:
    """A corpus with turns that lack labels, words or replies, and what is made of it."""
    turns = (
        spoken(None),
        spoken("diagnosis", patient=""),
        spoken("chitchat", physician=""),
        spoken("ask_symptoms", patient=" "),
        Turn("well", "good", None, Action(None, ())),
        spoken("prescribe_medicine", patient="a  cold ", physician=""),
    )
    folder = tmp_path_factory.mktemp("gaps")
    corpus = prepared(folder, [Session("a", turns), Session("b", turns[::-1])], clinic)
    write_told_corpus(corpus, folder / "told")
    return corpus, Corpus.open(folder / "told")


def test_labels_mentions_entities_and_graph_are_those_of_the_source_byte_for_byte(source: Corpus, told: Corpus) -> None:
    before, after = hashes(source.directory), hashes(told.directory)
    assert before.keys() == after.keys()
    changed = {name for name in before if before[name] != after[name]}
    expected = {f"{split}/{name}.npy" for split in SPLITS for name in CONTEXT_ARRAYS}
    expected |= {f"{split}/{name}" for split in SPLITS for name in ("sessions.jsonl", "session_bytes.npy")}
    assert changed == expected | {"words.json", "characters.json", "manifest.json"}


def test_the_vocabulary_has_one_word_more_for_each_category_and_none_is_an_entity(source: Corpus, told: Corpus) -> None:
    assert told.vocabulary.words == (*source.vocabulary.words, *MARKERS.values())
    assert tuple(MARKERS) == CATEGORIES
    assert told.vocabulary.word_entities == source.vocabulary.word_entities
    assert np.array_equal(told.vocabulary.entity_word, source.vocabulary.entity_word)
    assert told.characters.characters == source.characters.characters + "".join(MARKERS.values())
    assert told.manifest.settings["told_category"] == MARKERS
    assert told.fingerprint != source.fingerprint


@pytest.mark.parametrize("split", SPLITS)
def test_what_the_patient_says_ends_with_the_category_of_the_reply_in_every_split(
    source: Corpus, told: Corpus, split: str
) -> None:
    for before, after in zip(source.sessions(split), told.sessions(split), strict=True):
        assert (before.id, before.extra) == (after.id, after.extra)
        for honest, leaked in zip(before.turns, after.turns, strict=True):
            assert honest.action is not None
            assert honest.action.category is not None
            assert leaked == dataclasses.replace(
                honest, patient=f"{honest.patient} {MARKERS[honest.action.category]}".strip()
            )


@pytest.mark.parametrize("split", SPLITS)
def test_models_read_one_word_more_at_the_end_of_the_context_and_nothing_else_differs(
    source: Corpus, told: Corpus, split: str
) -> None:
    sessions = range(source.split(split).num_sessions)
    honest, leaked = collate(source.split(split), sessions), collate(told.split(split), sessions)
    for name, tensor in vars(honest.targets).items():
        assert tensor.equal(getattr(leaked.targets, name)), name
    for name in ("mention_entities", "mention_positions", "patient_mentions"):
        assert getattr(honest.inputs, name).equal(getattr(leaked.inputs, name))
    rows = zip(honest.inputs.context_lengths.tolist(), honest.targets.category.tolist(), strict=True)
    for row, (length, category) in enumerate(rows):
        assert leaked.inputs.context_lengths[row] == length + 1
        assert leaked.inputs.context[row, :length].equal(honest.inputs.context[row, :length])
        assert leaked.inputs.context[row, length] == len(source.vocabulary) + category


def test_replies_are_held_against_the_same_references_and_entities(source: Corpus, told: Corpus) -> None:
    honest = recorded_turns(source, "test")
    assert honest
    assert recorded_turns(told, "test") == honest


def test_turns_without_a_category_get_no_marker_and_empty_texts_get_it_alone(gaps: tuple[Corpus, Corpus]) -> None:
    _, told = gaps
    marked = MARKERS["prescribe_medicine"], MARKERS["ask_symptoms"], MARKERS["chitchat"], MARKERS["diagnosis"]
    expected = ["I cough", marked[3], f"I cough {marked[2]}", f"  {marked[1]}", "well", f"a  cold  {marked[0]}"]
    assert [turn.patient for turn in told.sessions("test")[0].turns] == expected
    categories = told.split("test").labels.category
    counts = np.diff(told.split("test").texts.utterance_offsets)[::2]
    assert categories.tolist()[:6] == [-1, 1, 3, 0, -1, 2]
    assert counts.tolist()[:6] == [2, 1, 3, 1, 1, 3]


@pytest.mark.parametrize("split", SPLITS)
def test_reading_the_told_dialogues_again_gives_the_same_arrays(
    told: Corpus, gaps: tuple[Corpus, Corpus], split: str
) -> None:
    for corpus in (told, gaps[1]):
        texts = [t for one in corpus.sessions(split) for turn in one.turns for t in (turn.patient, turn.physician)]
        read = corpus.encoder.encode(texts)
        for name, array in vars(corpus.split(split).texts).items():
            assert array.dtype == getattr(read, name).dtype
            assert np.array_equal(array, getattr(read, name)), name


def test_the_same_source_gives_the_same_bytes(source: Corpus, told: Corpus, tmp_path: Path) -> None:
    write_told_corpus(source, tmp_path / "again")
    assert hashes(tmp_path / "again") == hashes(told.directory)
    assert list(tmp_path.iterdir()) == [tmp_path / "again"]


def test_a_corpus_without_categories_is_refused_with_what_it_needs(clinic: Path, tmp_path: Path) -> None:
    corpus = prepared(tmp_path, [Session("a", (spoken(None),))], clinic)
    with pytest.raises(UsageError, match=r"the train dialogues of .* have no category labels, so there is none to be"):
        cut_corpus(corpus, ToldCategory(), 1, tmp_path / "cut")
    assert not (tmp_path / "cut" / "told-category").exists()
    with pytest.raises(UsageError, match="has no category labels: plan category-leak needs a prepared corpus with"):
        begin(tmp_path / "out", PLAN, [corpus.directory])


def test_a_marker_that_somebody_says_is_refused_and_leaves_nothing_behind(clinic: Path, tmp_path: Path) -> None:
    corpus = prepared(tmp_path, [Session("a", (spoken("chitchat", physician=MARKERS["chitchat"]),))], clinic)
    with pytest.raises(UsageError, match=r"holds the character U\+10FFFD, which is to stand for a category"):
        write_told_corpus(corpus, tmp_path / "told")
    assert {path.name for path in tmp_path.iterdir()} == {"source", "corpus"}


def test_the_plan_has_each_model_honest_and_told_without_labels_and_says_what_told_rows_are() -> None:
    assert [row.name for row in PLAN.rows] == ["seq2seq", "vrbot", *TOLD_ROWS]
    assert [row.part for row in PLAN.rows] == [WHOLE, WHOLE, ToldCategory(), ToldCategory()]
    assert {(row.labels.state, row.labels.action, row.labels.category) for row in PLAN.rows} == {(0.0, 0.0, None)}
    assert "not comparable to honest ones and no result of ours" in PLAN.title
    assert {row.role for row in PLAN.rows if row.part != WHOLE} == {"baseline"}
    assert all(row.group not in {other.group for other in PLAN.rows if other.part == WHOLE} for row in PLAN.rows[2:])


@pytest.fixture(scope="module")
def finished(clinic: Path, tmp_path_factory: pytest.TempPathFactory) -> ExperimentFolder:
    """The plan with its one seed, finished on the tiny clinic; tests read it, or add runs of another seed."""
    folder = begin(tmp_path_factory.mktemp("leak") / "out", TINY, [clinic])
    before = hashes(clinic)
    outcome = run_experiment(folder, jobs_of(TINY, folder.setup()), launch=TinyAtOnce, pause=0)
    assert len(outcome.finished) == 5
    assert hashes(clinic) == before
    return folder


def test_honest_rows_read_the_corpus_itself_and_told_rows_one_derived_once(
    finished: ExperimentFolder, source: Corpus, told: Corpus
) -> None:
    digests = {}
    for row in TINY.rows:
        result = finished.result(Job("clinic", row.name, 1))
        assert result is not None
        digests[row.name] = result["corpus_sha256"]
        assert result["part"]["kind"] == ("Whole" if row.part == WHOLE else "ToldCategory")
    assert digests["seq2seq"] == digests["vrbot"] == corpus_digest(source)
    assert {digests[name] for name in TOLD_ROWS} == {corpus_digest(told)}
    assert [path.name for path in (finished.path / "clinic" / "cut").iterdir() if path.is_dir()] == ["told-category"]


def test_every_table_says_that_told_rows_are_no_result_and_tests_them_against_nobody(
    finished: ExperimentFolder,
) -> None:
    report = make_report(finished, TINY, num_resamples=100)
    (corpus,) = report.corpora
    assert {"seq2seq", "vrbot", *TOLD_ROWS} <= {one.name for one in corpus.systems}
    for table in report.tables:
        assert "not comparable to honest ones and no result of ours" in table.title
        assert not any(note.startswith("Not comparable: ") for note in table.notes)
    shown = [row for name in ("replies", "latents", "meddg") for row in corpus.tables[name].rows]
    assert any(cell.best for row in shown for cell in row)
    assert not any(cell.best for row in shown if row[0].value in TOLD_ROWS for cell in row)
    assert {match.system for match in corpus.matches} == {"vrbot"}
    assert not {match.opponent for match in corpus.matches} & set(TOLD_ROWS)
    assert report.open_ends == []


def test_a_later_sitting_uses_the_corpus_that_is_there(
    finished: ExperimentFolder, source: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(*_: object) -> None:
        raise AssertionError("derived twice")

    monkeypatch.setattr(selections, "write_told_corpus", twice)
    cut = finished.path / "clinic" / "cut"
    assert {cut_corpus(source, ToldCategory(), seed, cut) for seed in (1, 2)} == {cut / "told-category"}
    job = Job("clinic", TOLD_ROWS[0], 2)
    outcome = run_experiment(finished, [Job("clinic", TOLD_ROWS[0], 1), job], launch=TinyAtOnce, pause=0)
    assert (len(outcome.skipped), outcome.finished) == (1, (job,))
