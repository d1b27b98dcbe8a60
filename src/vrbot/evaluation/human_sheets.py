"""Sheets for raters: CSV that spreadsheets open as it is meant, written and read back.

UTF-8 with a byte order mark, so that Chinese is shown; a text that a spreadsheet would take for a formula stands behind
an apostrophe, which is taken off again. Rows may be sorted in any way, and columns added.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vrbot.errors import DataError
from vrbot.evaluation.human_criteria import CRITERION_KEYS
from vrbot.evaluation.human_ratings import EXPLAINED, PREFERRED, Asked, Given, Judgement, check_answer
from vrbot.evaluation.human_study import Candidate, Explanation, Item, Page, Share, ShownPair, Study
from vrbot.files import atomic_write

FORMULA_STARTS = "=+-@＝＋－＠"
QUOTE = "'"
SPEAKERS = {"patient": "患者 Patient", "physician": "医生 Physician"}
ABOUT = {"reply": "回复 reply", "explanation": "解释 explanation"}
LONGEST_CELL = 30_000
"""Spreadsheets hold 32,767 characters in a cell; of a longer conversation the end is shown."""
_SAVE = "save the sheet as CSV in UTF-8"

Row = dict[str, str]


@dataclass(frozen=True)
class SheetForm:
    """A kind of sheet: its columns, the shown ones that must come back unchanged, and the ones to fill."""

    name: str
    columns: tuple[str, ...]
    shown: tuple[str, ...]
    answers: tuple[str, ...]


FORMS = (
    SheetForm("ratings", ("conversation", "reply"), ("reply",), CRITERION_KEYS),
    SheetForm("preferences", ("about", "conversation", "first", "second"), ("first", "second"), (PREFERRED,)),
    SheetForm(
        "explanations",
        ("conversation", "state", "category", "keywords", "graph", "paths", "asked", "name"),
        ("keywords", "asked", "name"),
        (EXPLAINED,),
    ),
)
IDENTITY = ("rater", "item", "code")


def neutral(text: str) -> str:
    """The text so that no spreadsheet calculates it; `restored` gives it back."""
    starts_formula = text.lstrip()[:1] in tuple(FORMULA_STARTS)
    return QUOTE + text if starts_formula or text[:1] in (QUOTE, "\t", "\r") else text


def restored(cell: str) -> str:
    """The text behind a cell, whatever `neutral` did."""
    return cell.removeprefix(QUOTE)


def write_sheets(folder: Path, study: Study, judgements: Iterable[Judgement] = ()) -> list[Path]:
    """Every rater's sheets, each file whole or not at all; `judgements` fill them, else they are blank."""
    answers = {judgement.question: judgement.answer for judgement in judgements}
    asked = Asked(study)
    written = []
    for share in study.shares:
        for form in FORMS:
            rows = [_answered(row, form, answers, asked) for row in sheet_rows(study, share, form)]
            if rows:
                written.append(folder / f"{share.rater}-{form.name}.csv")
                with atomic_write(written[-1]) as file:
                    file.write(_csv_text(form, rows))
    return written


def sheet_rows(study: Study, share: Share, form: SheetForm) -> Iterator[Row]:
    """The rows of a rater's sheet in the rater's order, answers left out, texts as they are."""
    for page in share.pages:
        item = study.item_of[page.item]
        for shown in _shown_rows(item, page, form):
            yield {"rater": share.rater, "item": item.item, **shown}


def read_sheet(path: Path, asked: Asked) -> list[Given]:
    """The answers of a filled sheet, wherever its rows stand; refuses rows that were taken apart by sorting."""
    found = []
    for line, form, cells in _rows_of(path):
        rater, code = cells["rater"].strip(), cells["code"].strip()
        asked.check(path, line, rater, code)
        if asked.names(code) != form.answers:
            fix = "put back the code of the sheet that was drawn"
            raise DataError(path, line, "code", f"{code!r} does not belong to a sheet of {form.name}", fix)
        page = asked.pages[rater][asked.item_of[code].item]
        expected = next(row for row in _shown_rows(asked.item_of[code], page, form) if row["code"] == code)
        _check_shown(path, line, form, cells, expected)
        for name in form.answers:
            if cells[name].strip():
                answer = _answer(path, line, name, cells[name].strip())
                found.append(Given(Judgement(rater, code, name, _by_code(code, page, name, answer, asked)), path, line))
    return found


def _shown_rows(item: Item, page: Page, form: SheetForm) -> list[Row]:
    conversation = "\n".join(f"{SPEAKERS[line.speaker]}: {line.text}" for line in item.context)[-LONGEST_CELL:]
    replies = {candidate.code: candidate for candidate in item.candidates}
    explanations = {explanation.code: explanation for explanation in item.explanations}
    if form.name == "ratings":
        rows = [_rating_row(replies[code]) for code in page.candidates]
    elif form.name == "preferences":
        about = {pair.code: pair.about for pair in item.pairs}
        rows = [_preference_row(pair, ABOUT[about[pair.code]], replies, explanations) for pair in page.pairs]
    else:
        rows = [row for code in page.explanations for row in _mark_rows(explanations[code])]
    return [{"conversation": conversation, **row} for row in rows]


def _rating_row(candidate: Candidate) -> Row:
    return {"code": candidate.code, "reply": candidate.reply}


def _preference_row(
    pair: ShownPair, about: str, replies: Mapping[str, Candidate], explanations: Mapping[str, Explanation]
) -> Row:
    first, second = (
        replies[code].reply if code in replies else explanation_text(explanations[code])
        for code in (pair.first, pair.second)
    )
    return {"code": pair.code, "about": about, "first": first, "second": second}


def _mark_rows(explanation: Explanation) -> list[Row]:
    shown = {
        "state": "，".join(explanation.state),
        "category": explanation.category or "",
        "keywords": "，".join(explanation.keywords),
        "graph": "，".join(explanation.linked),
        "paths": "\n".join(explanation.paths),
    }
    return [{"code": mark.code, **shown, "asked": mark.asked, "name": mark.name} for mark in explanation.marks]


def explanation_text(explanation: Explanation) -> str:
    """An explanation in a few lines, for one cell."""
    parts = {
        "状态 state": "，".join(explanation.state),
        "类别 category": explanation.category or "",
        "关键词 keywords": "，".join(explanation.keywords),
        "图谱关联 linked in the graph": "，".join(explanation.linked),
        "路径 paths": "\n".join(explanation.paths),
    }
    return "\n".join(f"{name}: {text}" for name, text in parts.items() if text)


def _answered(row: Row, form: SheetForm, answers: Mapping[tuple[str, str, str], int], asked: Asked) -> Row:
    filled = dict(row)
    page = asked.pages[row["rater"]][row["item"]]
    for name in form.answers:
        answer = answers.get((row["rater"], row["code"], name))
        filled[name] = "" if answer is None else str(_by_place(row["code"], page, name, answer, asked))
    return filled


def _by_place(code: str, page: Page, name: str, answer: int, asked: Asked) -> int:
    """A preference as the rater writes it: 1 the first shown, 2 the second, 0 neither."""
    if name != PREFERRED or not answer:
        return answer
    return 1 if (answer == 1) == _shown_by_code(code, page, asked) else 2


def _by_code(code: str, page: Page, name: str, answer: int, asked: Asked) -> int:
    """The reverse of `_by_place`."""
    if name != PREFERRED or not answer:
        return answer
    return 1 if (answer == 1) == _shown_by_code(code, page, asked) else -1


def _shown_by_code(code: str, page: Page, asked: Asked) -> bool:
    """Whether the rater sees the pair in the order of its codes."""
    return any(pair.code == code and pair.first == asked.pairs[code].first for pair in page.pairs)


def _csv_text(form: SheetForm, rows: Sequence[Row]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [*IDENTITY, *form.columns, *form.answers], lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: neutral(cell) for name, cell in row.items()} for row in rows)
    return "\ufeff" + text.getvalue()


def _rows_of(path: Path) -> Iterator[tuple[int, SheetForm, Row]]:
    """Each row that is not empty: its line, the form of the sheet, and its cells as texts."""
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(path, None, "file", f"cannot be read ({error})", _SAVE) from error
    delimiter = max(",;\t", key=content.partition("\n")[0].count)  # what a spreadsheet writes depends on its country
    reader = csv.DictReader(io.StringIO(content, newline=""), delimiter=delimiter)
    form = _form_of(path, reader.fieldnames or ())
    line = reader.line_num + 1
    try:
        for row in reader:
            cells = {name: restored(cell or "") for name, cell in row.items() if isinstance(name, str)}
            if any(cell.strip() for cell in cells.values()):
                yield line, form, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(path, line, "row", f"is not CSV ({error})", _SAVE) from error


def _form_of(path: Path, columns: Sequence[str]) -> SheetForm:
    for form in FORMS:
        if set(form.answers) <= set(columns):
            missing = [name for name in ("rater", "code", *form.shown) if name not in columns]
            if missing:
                raise DataError(path, 1, missing[0], "is no column here", "put back the columns of the sheet")
            return form
    every = "; ".join(", ".join(form.answers) for form in FORMS)
    raise DataError(path, 1, "columns", "are of no sheet", f"put back the columns to fill ({every}); {_SAVE}")


def _check_shown(path: Path, line: int, form: SheetForm, cells: Row, expected: Row) -> None:
    """Blanks apart, what the rater saw beside the code is what belongs to it."""
    for name in form.shown:
        if cells[name].split() != expected[name].split():
            problem = f"is not what was shown for {cells['code']!r}"
            raise DataError(path, line, name, problem, "sort whole rows only, and leave the texts as they are")


def _answer(path: Path, line: int, name: str, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if name not in (PREFERRED, EXPLAINED):
        return check_answer(path, line, name, number if number >= 0 else text)
    allowed = (0, 1, 2) if name == PREFERRED else (0, 1)
    if number not in allowed:
        fix = f"write {', '.join(map(str, allowed))}, or leave it empty"
        raise DataError(path, line, name, f"{text!r} is not an answer", fix)
    return number
