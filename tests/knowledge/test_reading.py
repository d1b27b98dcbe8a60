"""Files with triples, aliases, lexicons, entities and vocabularies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vrbot.errors import DataError
from vrbot.knowledge.aliases import read_aliases
from vrbot.knowledge.entities import read_entities, read_lexicon, read_vocabulary
from vrbot.knowledge.triples import Triple, load_triples, read_triples

FACTS = [Triple("flu", "contains_symptom", "cough"), Triple("syrup", "to_treat", "cough")]


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("header", ["HEAD,RELATION,TAIL", "head,relation,tail", "\ufeffHead, Relation ,Tail"])
def test_a_csv_header_is_read_in_any_case(tmp_path: Path, header: str) -> None:
    path = written(tmp_path, "graph.csv", f"{header}\nflu,contains_symptom,cough\n\nsyrup,to_treat, cough \n")
    assert read_triples(path) == FACTS


def test_columns_are_found_by_name_not_by_place(tmp_path: Path) -> None:
    path = written(tmp_path, "graph.csv", "tail,weight,head,relation\ncough,1,flu,contains_symptom\n")
    assert read_triples(path) == FACTS[:1]


def test_json_triples_may_be_lists_or_objects(tmp_path: Path) -> None:
    rows = [["flu", "contains_symptom", "cough"], {"HEAD": "syrup", "relation": "to_treat", "tail": "cough"}]
    assert read_triples(written(tmp_path, "graph.json", json.dumps(rows))) == FACTS


def test_repeated_triples_are_removed_and_counted_but_parallel_relations_stay(tmp_path: Path) -> None:
    rows = "a,caused_by,b\na,related_to,b\na,caused_by,b\na,caused_by,b\n"
    loaded = load_triples(written(tmp_path, "graph.csv", "HEAD,RELATION,TAIL\n" + rows))
    assert loaded.triples == [Triple("a", "caused_by", "b"), Triple("a", "related_to", "b")]
    assert loaded.num_duplicates == 2


def test_an_error_names_file_line_field_problem_and_fix(tmp_path: Path) -> None:
    path = written(tmp_path, "graph.csv", "HEAD,RELATION,TAIL\nflu,contains_symptom,cough\nflu,,cough\n")
    with pytest.raises(DataError) as caught:
        read_triples(path)
    assert str(caught.value) == f"{path}:3: relation: the name is empty: write a name or remove the row"


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (b"", "file"),
        (b"HEAD,RELATION\nflu,x\n", "tail"),
        (b"HEAD,RELATION,TAIL\n", "file"),
        (b"HEAD,RELATION,TAIL\na,b\n", "row"),
        (b"HEAD,RELATION,TAIL\na,b,\xff\n", "text"),
        (b"HEAD,RELATION,TAIL\na,b,c\x00d\n", "tail"),
        (b'HEAD,RELATION,TAIL\na,b,"c"d\n', "csv"),
        (b"HEAD,RELATION,TAIL\na,b," + b"x" * 200_000, "csv"),
        (b"HEAD,RELATION,TAIL\na,b," + b"x" * 20_000, "tail"),
    ],
)
def test_a_broken_table_says_what_is_wrong_with_it(tmp_path: Path, content: bytes, field: str) -> None:
    path = tmp_path / "graph.csv"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_triples(path)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "text", ["{}", "3", "null", '"x"', "[1]", "[[]]", '[["a","b"]]', '[["a","b",3]]', '[{"head":"a"}]', "[" * 5000]
)
def test_json_of_another_shape_is_no_graph(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError):
        read_triples(written(tmp_path, "graph.json", text))


def test_a_directory_a_missing_file_and_an_impossible_path_are_data_errors(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.csv", Path("a\0b")):
        for read in (read_triples, read_aliases, read_lexicon, read_entities, read_vocabulary):
            with pytest.raises(DataError):
                read(path)


def test_an_alias_given_twice_with_different_names_is_refused(tmp_path: Path) -> None:
    assert read_aliases(written(tmp_path, "same.json", '{"a": "b", "a": "b"}')) == {"a": "b"}
    for text in ('{"a": "b", "a": "c"}', '{"a": "b", " a ": "c"}'):
        with pytest.raises(DataError, match="twice"):
            read_aliases(written(tmp_path, "two.json", text))


def test_a_lexicon_gives_each_surface_its_different_entities(tmp_path: Path) -> None:
    path = written(tmp_path, "lexicon.json", '{"gut inflamed": ["gastritis", "enteritis", "gastritis"]}')
    assert read_lexicon(path) == {"gut inflamed": ("gastritis", "enteritis")}
    with pytest.raises(DataError, match="gut"):
        read_lexicon(written(tmp_path, "bad.json", '{"gut": "gastritis"}'))


def test_an_entity_type_the_house_does_not_know_counts_as_other(tmp_path: Path) -> None:
    text = "entity,type,mentions\ncough,Symptom,12\nsurgery,treatment,1\n"
    assert read_entities(written(tmp_path, "entities.csv", text)) == {"cough": "symptom", "surgery": "other"}


def test_a_vocabulary_file_tells_words_from_entities(tmp_path: Path) -> None:
    vocabulary = read_vocabulary(written(tmp_path, "vocab.csv", "Word,Is_know\nthe,0\ncough,1\n\x05,0\n"))
    assert vocabulary.words == ("the", "cough", "\x05")
    assert vocabulary.entities == ("cough",)
    with pytest.raises(DataError, match="neither 0 nor 1"):
        read_vocabulary(written(tmp_path, "bad.csv", "Word,Is_know\nthe,yes\n"))
