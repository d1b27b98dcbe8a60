"""The MedDialog family: raw text blocks, or processed JSON.

Raw: blocks that begin with `id=<number>`, then the page's address and sections under the headings `Description`,
`Dialogue` and `Diagnosis and suggestions`, each possibly several times (follow-up consultations of one patient).

- A block is one session. A speaker stands alone on a line (`病人：`, `医生：`, `Patient:`, `Doctor:`); the lines after
  it, joined by spaces, are what is said. `医生：您好` in an utterance is thus text: the patient addresses the doctor.
- A description is the form the patient filled in, so it is read as the patient's words at the place where it stands.
- `Diagnosis and suggestions` is written after the conversation and is no utterance: it is kept in
  `extra["diagnosis_and_suggestions"]`, one text per section. What precedes the first heading is `extra["source"]`.

Processed: a list of dialogues, each a list of strings that begin with `病人：` or `医生：`.

Neither has labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from vrbot.dialogue.import_report import Draft, Repair, Repairs
from vrbot.dialogue.merging import Speaker, Utterance, exchanges_of, speaker_named
from vrbot.dialogue.session import Session, Turn
from vrbot.dialogue.sources import Place, decode, parse_json, shown, whole_file

_HEADINGS = frozenset({"Description", "Dialogue", "Diagnosis and suggestions"})
_BLOCK_START = re.compile(r"id\s*=\s*(\d{1,18})")
_SPEAKER_LINE = re.compile(r"(\w{2,10})\s*[：:]")
_SPEAKER_PREFIX = re.compile(r"\s*(\w{2,10})\s*[：:]")


def read_meddialog(path: Path, repairs: Repairs) -> Iterator[Draft]:
    """The dialogues of one file; JSON begins with a bracket, raw text never does."""
    text = decode(whole_file(path), Place(path))
    if text.lstrip().startswith(("[", "{")):
        yield from _processed_drafts(text, path)
    else:
        yield from _raw_drafts(text, path)


# --- processed JSON ---------------------------------------------------------------------------------------------------


def _processed_drafts(text: str, path: Path) -> Iterator[Draft]:
    dialogues = parse_json(text, Place(path))
    if not isinstance(dialogues, list):
        problem = f"must be a list of dialogues, got {shown(dialogues)}"
        raise Place(path).error(problem, "check the format; canonical files have one dialogue a line")
    for index, dialogue in enumerate(dialogues):
        place = Place(path, None, f"dialogue {index}")
        yield Draft(place, partial(_processed_session, dialogue, f"{path.stem}-{index}", place))


def _processed_session(dialogue: Any, name: str, place: Place, repairs: Repairs) -> Session:
    if not isinstance(dialogue, list):
        raise place.error(f"must be a list of strings, got {shown(dialogue)}", "write each utterance as a string")
    utterances = [_prefixed(line, place.inside(f"[{i}]")) for i, line in enumerate(dialogue)]
    return _unlabelled_session(name, utterances, {}, place, repairs)


def _prefixed(line: Any, place: Place) -> Utterance:
    prefix = _SPEAKER_PREFIX.match(line) if isinstance(line, str) else None
    speaker = speaker_named(prefix[1]) if prefix else None
    if prefix is None or speaker is None:
        raise place.error(f"does not begin with a speaker: {shown(line)}", "begin it with 病人： or 医生：")
    return Utterance(speaker, line[prefix.end() :])


# --- raw text ---------------------------------------------------------------------------------------------------------


@dataclass
class _Block:
    """The sections of one block as they are gathered, in their order."""

    utterances: list[Utterance] = field(default_factory=list)
    conclusions: list[str] = field(default_factory=list)
    source: str = ""

    def extra(self) -> dict[str, Any]:
        parts = {"source": self.source, "diagnosis_and_suggestions": self.conclusions}
        return {key: value for key, value in parts.items() if value}


def _raw_drafts(text: str, path: Path) -> Iterator[Draft]:
    """One draft per `id=` line; text before the first one is a draft that complains."""
    lines = [line.strip() for line in text.split("\n")]
    starts = [index for index, line in enumerate(lines) if _BLOCK_START.fullmatch(line)]
    first = starts[0] if starts else len(lines)
    if any(lines[:first]):
        place = Place(path, next(number for number, line in enumerate(lines, start=1) if line))
        yield Draft(place, partial(_text_outside_blocks, place))
    for start, end in pairwise([*starts, len(lines)]):
        place = Place(path, start + 1, lines[start])
        yield Draft(place, partial(_raw_session, lines[start:end], path.stem, place))


def _text_outside_blocks(place: Place, repairs: Repairs) -> Session:
    raise place.error(
        "there is text before the first `id=` line", "begin each dialogue with id=<number> on its own line"
    )


def _raw_session(lines: list[str], stem: str, place: Place, repairs: Repairs) -> Session:
    start = _BLOCK_START.fullmatch(lines[0])
    assert start is not None  # that is how the block was found
    block = _Block()
    for heading, body in _sections(lines[1:]):
        words = " ".join(line for line in body if line)
        match heading:
            case "Description":
                repairs[Repair.DESCRIPTION_AS_UTTERANCE] += 1
                block.utterances.append(Utterance(Speaker.PATIENT, words))
            case "Dialogue":
                block.utterances += _spoken(body, place, repairs)
            case "Diagnosis and suggestions":
                block.conclusions.append(words)
            case _:
                block.source = words
    return _unlabelled_session(f"{stem}-{start[1]}", block.utterances, block.extra(), place, repairs)


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each heading with the lines under it; first the lines above all headings, under no name."""
    heading, body = "", list[str]()
    for line in lines:
        if line in _HEADINGS:
            yield heading, body
            heading, body = line, []
        else:
            body.append(line)
    yield heading, body


def _spoken(lines: list[str], place: Place, repairs: Repairs) -> Iterator[Utterance]:
    """The utterances under one `Dialogue` heading."""
    speaker, words, spoken = Speaker.PATIENT, list[str](), False
    for line in lines:
        named = _speaker_alone(line)
        if named is None:
            if line and not spoken:
                repairs[Repair.TEXT_WITHOUT_SPEAKER] += 1
            words += [line] if line else []
            continue
        if spoken or words:
            yield Utterance(speaker, " ".join(words))
        speaker, words, spoken = named, [], True
    if words and not spoken:
        raise place.inside("Dialogue").error(
            "nobody is named as speaker", "put 病人： or 医生： alone on the line above"
        )
    if spoken:
        yield Utterance(speaker, " ".join(words))


def _speaker_alone(line: str) -> Speaker | None:
    marker = _SPEAKER_LINE.fullmatch(line)
    return speaker_named(marker[1]) if marker else None


# --- both -------------------------------------------------------------------------------------------------------------


def _unlabelled_session(
    name: str, utterances: list[Utterance], extra: dict[str, Any], place: Place, repairs: Repairs
) -> Session:
    exchanges = exchanges_of(utterances, repairs)
    if not exchanges:
        raise place.error("nobody says anything", "remove the dialogue or give it a text")
    return Session(name, tuple(Turn(each.patient.text, each.physician.text) for each in exchanges), extra)
