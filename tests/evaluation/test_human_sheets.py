"""Sheets and console files: what was written comes back, and what cannot be right is refused with its place."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.invented_study import ODD_TEXTS, drawn, invented_field, odd_replies, random_judgements
from vrbot.errors import DataError, IntegrityError
from vrbot.evaluation.human_folders import gather_judgements
from vrbot.evaluation.human_ratings import Asked, Judgement, read_ratings, write_ratings
from vrbot.evaluation.human_sample import SampleSettings
from vrbot.evaluation.human_sheets import FORMS, FORMULA_STARTS, neutral, read_sheet, restored, write_sheets
from vrbot.evaluation.human_study import Study, read_key, read_study, write_key, write_study
from vrbot.files import sha256_of

SMALL = SampleSettings(dialogues=3, raters=3, judges_per_item=2, seed=2)
Row = dict[str, str]


@pytest.fixture(scope="module")
def study() -> Study:
    return drawn(invented_field(3), SMALL)[0]


def read_rows(path: Path) -> list[Row]:
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def write_rows(path: Path, rows: list[Row], delimiter: str = ",", encoding: str = "utf-8") -> None:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(text.getvalue().encode(encoding))


@given(st.text() | st.sampled_from(ODD_TEXTS))
def test_a_cell_is_never_a_formula_and_gives_its_text_back(text: str) -> None:
    assert neutral(text).lstrip()[:1] not in tuple(FORMULA_STARTS)
    assert restored(neutral(text)) == text


@settings(max_examples=25, deadline=None)
@given(odd_replies, st.integers(0, 1000), st.floats(0, 1))
def test_judgements_come_back_from_sheets_and_from_console_files(replies: list[str], seed: int, share: float) -> None:
    field = invented_field(3, reply=lambda system, dialogue, turn: replies[len(system) % 3 * 3 + dialogue])
    study, _ = drawn(field, SMALL)
    judgements = random_judgements(study, seed, share)
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_sheets(folder, study, judgements)
        assert set(gather_judgements(study, [folder])) == set(judgements)
        write_ratings(folder / "console.jsonl", judgements, study)
        given_lines = read_ratings(folder / "console.jsonl", Asked(study))
        assert [one.judgement for one in given_lines] == judgements


def test_rows_in_another_order_or_with_other_separators_say_the_same(study: Study, tmp_path: Path) -> None:
    judgements = random_judgements(study, 5)
    for number, path in enumerate(write_sheets(tmp_path, study, judgements)):
        rows = read_rows(path)
        random.Random(number).shuffle(rows)
        remarked = [{"remark": "好", **row} for row in rows]
        remarked.append(dict.fromkeys(remarked[0], ""))
        write_rows(path, remarked, ",;\t"[number % 3], ("utf-8", "utf-8-sig")[number % 2])
    assert set(gather_judgements(study, [tmp_path])) == set(judgements)


def test_sheets_open_in_a_spreadsheet_with_chinese_and_without_formulas(tmp_path: Path) -> None:
    texts = iter(ODD_TEXTS * 9)
    study, _ = drawn(invented_field(3, reply=lambda *_: next(texts)), SMALL)
    written = write_sheets(tmp_path, study)
    assert len(written) == 9
    for path in written:
        assert path.read_bytes().startswith(b"\xef\xbb\xbf")
        assert not any(cell.lstrip()[:1] in tuple(FORMULA_STARTS) for row in read_rows(path) for cell in row.values())
    replies = {restored(row["reply"]) for row in read_rows(tmp_path / "rater-1-ratings.csv")}
    assert replies <= {text.strip() for text in ODD_TEXTS}


def test_full_width_digits_are_digits(study: Study, tmp_path: Path) -> None:
    path = write_sheets(tmp_path, study)[0]
    rows = read_rows(path)
    rows[0]["Flu"] = " ４ "
    write_rows(path, rows)
    (found,) = read_sheet(path, Asked(study))
    assert found.judgement == Judgement("rater-1", rows[0]["code"], "Flu", 4)


def change(field: str, value: str) -> Callable[[list[Row]], None]:
    def apply(rows: list[Row]) -> None:
        rows[1][field] = value

    return apply


def swap_codes(rows: list[Row]) -> None:
    rows[0]["code"], rows[1]["code"] = rows[1]["code"], rows[0]["code"]


def repeat(rows: list[Row]) -> None:
    rows[0]["Flu"] = "3"
    rows.insert(1, dict(rows[0]))


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (change("Flu", "6"), "Flu: 6 is not a rating: write a whole number from 1 to 5"),
        (change("KC", "good"), "KC: 'good' is not a rating"),
        (change("EQ", "3.5"), "EQ: '3.5' is not a rating"),
        (change("EQ", "0"), "EQ: 0 is not a rating"),
        (change("code", "unknown"), "code: 'unknown' is not a code of this study"),
        (change("rater", "rater-9"), "rater: 'rater-9' is not a rater of this study: write one of rater-1, rater-2"),
        (change("reply", "改写"), "reply: is not what was shown for"),
        (swap_codes, "reply: is not what was shown for"),
        (repeat, "code: rater-1 answered Flu of"),
    ],
)
def test_a_spoilt_sheet_is_refused_with_file_line_field_problem_and_fix(
    spoil: Callable[[list[Row]], None], problem: str, study: Study, tmp_path: Path
) -> None:
    path = write_sheets(tmp_path, study)[0]
    rows = read_rows(path)
    conversations = [row["conversation"].count("\n") + 1 for row in rows]
    spoil(rows)
    write_rows(path, rows)
    with pytest.raises(DataError) as caught:
        gather_judgements(study, [path])
    assert problem in str(caught.value)
    first = 2 if spoil is swap_codes else 2 + conversations[0]
    assert str(caught.value).startswith(f"{path}:{first}: ")


def test_a_code_of_another_raters_share_is_refused(study: Study, tmp_path: Path) -> None:
    write_sheets(tmp_path, study)
    items = [{page.item for page in share.pages} for share in study.shares]
    rows = [row for row in read_rows(tmp_path / "rater-1-ratings.csv") if row["item"] in items[0] - items[1]]
    write_rows(tmp_path / "mixed.csv", [{**row, "rater": "rater-2"} for row in rows])
    with pytest.raises(DataError, match="was not given to rater-2 to judge"):
        gather_judgements(study, [tmp_path / "mixed.csv"])


def test_a_code_of_another_kind_of_sheet_is_refused(study: Study, tmp_path: Path) -> None:
    ratings, preferences, explanations = write_sheets(tmp_path, study)[:3]
    rows = read_rows(ratings)
    rows[0]["code"] = read_rows(preferences)[0]["code"]
    write_rows(ratings, rows)
    with pytest.raises(DataError, match="does not belong to a sheet of ratings"):
        read_sheet(ratings, Asked(study))
    for path, column in ((preferences, "preferred"), (explanations, "explained")):
        rows = read_rows(path)
        rows[0][column] = "3"
        write_rows(path, rows)
        with pytest.raises(DataError, match=f"{column}: '3' is not an answer: write 0, 1"):
            read_sheet(path, Asked(study))


def test_an_answer_in_a_sheet_and_in_a_console_file_is_one_too_many(study: Study, tmp_path: Path) -> None:
    judgements = random_judgements(study, 1, 1.0)
    write_sheets(tmp_path, study, judgements)
    write_ratings(tmp_path / "console.jsonl", judgements[:1], study)
    with pytest.raises(DataError, match="keep one of the two answers"):
        gather_judgements(study, [tmp_path])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("rater,code\n", "1: columns: are of no sheet"),
        ("rater,Flu,KC,EQ,reply\n", "1: code: is no column here"),
        ("rater,code,reply,Flu,KC,EQ\nrater-1", "2: code: '' is not a code"),
        ("", "1: columns: are of no sheet"),
    ],
)
def test_a_file_that_is_no_sheet_is_refused(content: str, problem: str, study: Study, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_sheet(path, Asked(study))
    assert problem in str(caught.value)


def test_a_sheet_in_another_encoding_is_refused_with_the_way_out(study: Study, tmp_path: Path) -> None:
    path = write_sheets(tmp_path, study)[0]
    write_rows(path, read_rows(path), encoding="gb18030")
    with pytest.raises(DataError, match="save the sheet as CSV in UTF-8"):
        read_sheet(path, Asked(study))
    with pytest.raises(DataError, match="neither a sheet nor a folder"):
        gather_judgements(study, [tmp_path / "sheet.xlsx"])


@pytest.mark.parametrize(
    ("asked", "answer", "problem"),
    [
        ("Flu", 9, "Flu: 9 is not a rating"),
        ("Flu", True, "Flu: True is not a rating"),
        ("Flu", None, "Flu: None is not a rating"),
        ("preferred", "tie", "asked: 'preferred' is not asked here: ask Flu or KC or EQ"),
    ],
)
def test_a_spoilt_console_line_is_refused(
    asked: str, answer: object, problem: str, study: Study, tmp_path: Path
) -> None:
    page = study.shares[0].pages[0]
    line = {"rater": "rater-1", "code": page.candidates[0], "asked": asked, "answer": answer}
    path = tmp_path / "console.jsonl"
    path.write_text(f"\n{json.dumps(line)}\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_ratings(path, Asked(study))
    assert f"{path}:2: {problem}" in str(caught.value)


def test_console_answers_to_pairs_and_marks_are_checked(study: Study, tmp_path: Path) -> None:
    item = study.item_of[study.shares[0].pages[0].item]
    path = tmp_path / "console.jsonl"
    wrong = [
        (item.pairs[0].code, "preferred", "other", "is not of this pair"),
        (item.pairs[0].code, "preferred", ["tie"], "is not of this pair"),
        (item.explanations[0].marks[0].code, "explained", 1, "neither true nor false"),
    ]
    for code, asked, answer, problem in wrong:
        path.write_text(json.dumps({"rater": "rater-1", "code": code, "asked": asked, "answer": answer}), "utf-8")
        with pytest.raises(DataError, match=problem):
            read_ratings(path, Asked(study))
    for text in ("[]", "{", '{"rater": "rater-1"}', '{"rater": "r", "code": "c", "asked": "Flu"}'):
        path.write_text(text, "utf-8")
        with pytest.raises(DataError, match="as one JSON object"):
            read_ratings(path, Asked(study))


def test_study_and_key_come_back_and_belong_together(tmp_path: Path) -> None:
    study, key = drawn(invented_field(3), SMALL)
    write_study(tmp_path / "study.json", study)
    assert read_study(tmp_path / "study.json") == study
    sealed = replace(key, study_sha256=sha256_of(tmp_path / "study.json"))
    write_key(tmp_path / "key.json", sealed)
    assert read_key(tmp_path / "key.json", tmp_path / "study.json") == sealed
    write_key(tmp_path / "key.json", key)
    with pytest.raises(IntegrityError, match="is not the key of"):
        read_key(tmp_path / "key.json", tmp_path / "study.json")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{}", "version: Field required"),
        ('{"version": 2, "criteria": [], "questions": [], "items": [], "shares": []}', "version: is 2"),
        ("no json", "file: Invalid JSON"),
    ],
)
def test_a_file_that_is_no_study_is_refused(content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_study(tmp_path / "study.json")
    assert problem in str(caught.value)
    with pytest.raises(DataError, match="cannot be read"):
        read_study(tmp_path / "absent.json")


def test_every_form_has_its_own_answers() -> None:
    answers = [name for form in FORMS for name in form.answers]
    assert len(answers) == len(set(answers))
