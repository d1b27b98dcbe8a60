"""The paper authors' release: `{task}_{train,valid,test}.zip`, one JSON file per dialogue.

`{"dialogues": [{"turn", "sentence", "role", "tokens", "type", "keywords"}]}`

- A physician's `type` and `keywords` are the action. The release has no state labels, so `state` is null; the keywords
  of the patient's utterances are kept, turn by turn, in `extra["patient_keywords"]` and do not label the whole state.
- `tokens` are one segmentation of `sentence` and are used only where the sentence is missing.
- Other keys beside `dialogues` are kept in `extra["source"]`.
- A folder of the unpacked JSON files is read like the archive.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from vrbot.dialogue.import_report import Draft, Repair, Repairs
from vrbot.dialogue.merging import Speaker, Utterance, distinct, exchanges_of, speaker_named
from vrbot.dialogue.session import CATEGORIES, Session, Turn
from vrbot.dialogue.sources import Budget, Place, decode, parse_json, require_file, shown, whole_file

MAX_MEMBER_BYTES = 16 * 2**20
"""No single dialogue unpacks to more than this."""

MAX_EXPANSION = 100
"""How many times its own size an archive may unpack to (dialogues in JSON: a few times)."""

_CATEGORY_OF_TYPE = {
    **{category: category for category in CATEGORIES},
    "prescribe": "prescribe_medicine",
    "prescribe_medicines": "prescribe_medicine",
    "prescribing_medicine": "prescribe_medicine",
}
_FIELDS = frozenset({"turn", "sentence", "role", "tokens", "type", "keywords"})
_FETCH = "fetch the archive again"


def read_release(path: Path, repairs: Repairs) -> Iterator[Draft]:
    """The dialogues of an archive, in its order, or of a folder of unpacked files, by name."""
    if path.is_dir():
        yield from _folder_drafts(path)
        return
    require_file(path)
    with _opened(path) as archive:
        budget = Budget(max(4 * MAX_MEMBER_BYTES, MAX_EXPANSION * path.stat().st_size))
        seen: set[str] = set()
        for member in archive.infolist():
            if member.is_dir():
                continue
            if _is_system_file(member.filename):
                repairs[Repair.SYSTEM_MEMBER] += 1
                continue
            place = Place(path, None, f"member {shown(member.filename)}")
            repeated = member.filename in seen
            yield Draft(place, partial(_session_of_member, archive, member, place, budget, repeated))
            seen.add(member.filename)


def _folder_drafts(folder: Path) -> Iterator[Draft]:
    files = sorted(folder.rglob("*.json"))
    if not files:
        raise Place(folder).error("holds no .json file", "name an archive, or a folder of unpacked dialogues")
    for file in files:
        yield Draft(Place(file), partial(_session_of_file, file, folder))


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except Exception as error:  # zipfile meets damage with a dozen kinds of exception
        raise Place(path).error(f"is not a readable zip archive ({type(error).__name__})", _FETCH) from None


def _is_system_file(name: str) -> bool:
    """What operating systems leave in archives: resource forks and hidden files."""
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or (bool(parts) and parts[-1].startswith("."))


def _session_of_file(file: Path, folder: Path, repairs: Repairs) -> Session:
    name = file.relative_to(folder).with_suffix("").as_posix()
    return _session(whole_file(file), f"{folder.name}/{name}", Place(file), repairs)


def _session_of_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: Place, budget: Budget, repeated: bool, repairs: Repairs
) -> Session:
    if repeated:
        raise place.error("stands twice in the archive", "remove one of the two")
    if not member.filename.lower().endswith(".json"):
        raise place.error("is not a .json file", "leave only dialogues in the archive")
    if member.flag_bits & 0x1:
        raise place.error("is encrypted", "unpack the archive with its password and pack it again without")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise place.error(f"has the unusual compression {member.compress_type}", "pack it again with deflate")
    if member.file_size > MAX_MEMBER_BYTES:
        raise place.error(f"unpacks to more than {MAX_MEMBER_BYTES >> 20} MiB", "keep one dialogue per file")
    budget.spend(member.file_size, place)
    try:
        data = archive.read(member)
    except Exception as error:  # as in _opened; nothing of ours runs inside
        raise place.error(f"is damaged ({type(error).__name__})", _FETCH) from None
    return _session(data, f"{Path(place.file).stem}/{member.filename[: -len('.json')]}", place, repairs)


def _session(data: bytes, name: str, place: Place, repairs: Repairs) -> Session:
    document = parse_json(decode(data, place), place)
    lines = document.get("dialogues") if isinstance(document, dict) else None
    if not isinstance(lines, list) or not lines:
        problem = "holds no dialogue" if lines == [] else "is not an object with a list `dialogues`"
        raise place.error(problem, 'write {"dialogues": [...]}')
    utterances = [_utterance(line, place.inside(f"dialogues[{i}]"), repairs) for i, line in enumerate(lines)]
    _count_disorder([line.get("turn") for line in lines], repairs)
    exchanges = exchanges_of(utterances, repairs)
    if not exchanges:
        raise place.error("nobody says anything", "remove the dialogue or give it a text")
    turns = tuple(Turn(each.patient.text, each.physician.text, None, each.action) for each in exchanges)
    extra: dict[str, Any] = {}
    if any(each.patient.entities for each in exchanges):
        extra["patient_keywords"] = [list(each.patient.entities or ()) for each in exchanges]
    if source := {key: value for key, value in document.items() if key != "dialogues"}:
        extra["source"] = source
    return Session(name, turns, extra)


def _utterance(line: Any, place: Place, repairs: Repairs) -> Utterance:
    if not isinstance(line, dict):
        raise place.error(f"must be an object, got {shown(line)}", 'write {"role": ..., "sentence": ..., ...}')
    repairs[Repair.UNUSED_FIELD] += len(line.keys() - _FIELDS)
    role = line.get("role")
    speaker = speaker_named(role) if isinstance(role, str) else None
    if speaker is None:
        raise place.inside("role").error(f"unknown role {shown(role)}", "use patient or doctor")
    category = _category(line.get("type"), place)
    if category is not None and speaker is Speaker.PATIENT:
        repairs[Repair.PATIENT_CATEGORY] += 1
        category = None
    keywords = line.get("keywords")
    if keywords is None:
        repairs[Repair.MISSING_LABELS] += 1
        entities = None
    else:
        entities = distinct(_strings(keywords, place.inside("keywords")), repairs)
    return Utterance(speaker, _sentence(line, place, repairs), entities, category)


def _sentence(line: dict[str, Any], place: Place, repairs: Repairs) -> str:
    sentence = line.get("sentence")
    if isinstance(sentence, str):
        return sentence
    if sentence is None and line.get("tokens") is not None:
        repairs[Repair.TEXT_FROM_TOKENS] += 1
        return _joined(_strings(line["tokens"], place.inside("tokens")))
    raise place.inside("sentence").error(f"must be a string, got {shown(sentence)}", 'write the text, or ""')


def _joined(tokens: list[str]) -> str:
    """Tokens as running text: a space only between two words in Latin letters or digits."""
    text = ""
    for token in tokens:
        glued = text[-1:].isascii() and token[:1].isascii() and text[-1:].isalnum() and token[:1].isalnum()
        text += f" {token}" if glued else token
    return text


def _category(kind: Any, place: Place) -> str | None:
    if kind is None:
        return None
    category = _CATEGORY_OF_TYPE.get(kind) if isinstance(kind, str) else None
    if category is None:
        known = ", ".join(sorted(_CATEGORY_OF_TYPE))
        raise place.inside("type").error(f"unknown type {shown(kind)}", f"use one of {known}, or null")
    return category


def _strings(value: Any, place: Place) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise place.error(f"must be a list of strings, got {shown(value)}", "write each as a string, or [] for none")
    return value


def _count_disorder(numbers: list[Any], repairs: Repairs) -> None:
    counted = [number for number in numbers if isinstance(number, int)]
    if counted != sorted(counted):
        repairs[Repair.TURN_NUMBERS_DISORDERED] += 1
