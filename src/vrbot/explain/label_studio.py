"""Label Studio: turns with proposals as tasks with predictions, and what its annotators decided as labels.

A task is one turn: the conversation up to the physician's answer, and three questions (`SETUP` is the labelling
configuration to paste into a project). State and keywords are lines of text, an entity each; the category is a choice.
An annotation that was submitted answers every question the task asked: no line means that there is no entity.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vrbot.dialogue.session import CATEGORIES
from vrbot.dialogue.sources import Place as FilePlace
from vrbot.dialogue.sources import decode, parse_json, whole_file
from vrbot.errors import DataError
from vrbot.explain.given_labels import GivenLabel
from vrbot.explain.proposals import KINDS, Kind, Proposal, ProposedSession, checked_value, label_of
from vrbot.files import atomic_write

CONVERSATION = "conversation"
_TYPES: Mapping[Kind, str] = {"state": "textarea", "category": "choices", "keywords": "textarea"}
_FIELDS: Mapping[Kind, str] = {"state": "text", "category": "choices", "keywords": "text"}
_FIX = "export the annotated tasks from Label Studio as JSON"

SETUP = f"""<View>
  <Paragraphs name="{CONVERSATION}" value="$conversation" layout="dialogue" nameKey="author" textKey="text"/>
  <Header value="State: entities of the patient's state up to this turn, a line each"/>
  <TextArea name="state" toName="{CONVERSATION}" editable="true" rows="1" maxSubmissions="40"/>
  <Header value="Action: what the last answer does"/>
  <Choices name="category" toName="{CONVERSATION}" choice="single" showInline="true">
{chr(10).join(f'    <Choice value="{category}"/>' for category in CATEGORIES)}
  </Choices>
  <Header value="Action: entities of the last answer, a line each"/>
  <TextArea name="keywords" toName="{CONVERSATION}" editable="true" rows="1" maxSubmissions="40"/>
</View>
"""


def write_tasks(path: Path, proposed: Iterable[ProposedSession]) -> int:
    """Writes a task for every turn that has something to label, dialogues in their order; gives their number."""
    tasks = [task for one in proposed for task in tasks_of(one)]
    with atomic_write(path) as file:
        json.dump(tasks, file, ensure_ascii=False, indent=1, allow_nan=False)
        file.write("\n")
    return len(tasks)


def tasks_of(one: ProposedSession) -> Iterator[dict[str, Any]]:
    """The turns of a session as tasks; labels that are there are shown as predictions of confidence 1."""
    said: list[dict[str, str]] = []
    for number, (turn, proposals) in enumerate(zip(one.session.turns, one.turns, strict=True)):
        texts = (("patient", turn.patient), ("physician", turn.physician))
        said += [{"author": author, "text": text} for author, text in texts if text]
        if not proposals:
            continue
        shown: dict[Kind, Proposal] = dict(proposals)
        for kind in KINDS:
            label = label_of(turn, kind)
            if label is not None:
                shown[kind] = Proposal(label, 1.0)
        data = {"dialogue": one.session.id, "turn": number, "split": one.split, "asked": list(shown)}
        results = [_result(kind, shown[kind]) for kind in KINDS if kind in shown and shown[kind].value]
        score = min(proposal.confidence for proposal in proposals.values())
        prediction = {"model_version": one.model, "score": score, "result": results}
        yield {"data": {**data, CONVERSATION: list(said)}, "predictions": [prediction]}


def _result(kind: Kind, proposal: Proposal) -> dict[str, Any]:
    values = [proposal.value] if isinstance(proposal.value, str) else list(proposal.value)
    return {
        "id": kind,
        "from_name": kind,
        "to_name": CONVERSATION,
        "type": _TYPES[kind],
        "value": {_FIELDS[kind]: values},
        "score": proposal.confidence,
    }


def read_annotations(path: Path) -> list[GivenLabel]:
    """The labels of every task with a submitted annotation: of several the newest, none that was cancelled."""
    place = FilePlace(path)
    tasks = parse_json(decode(whole_file(path), place), place)
    if not isinstance(tasks, list):
        raise DataError(path, None, "file", "is not a list of tasks", _FIX)
    found: list[GivenLabel] = []
    for number, task in enumerate(tasks):
        try:
            found += _labels_of(task)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            detail = f"has no {error}" if isinstance(error, KeyError) else str(error)
            raise DataError(path, None, f"[{number}]", detail, _FIX) from None
    return found


def _labels_of(task: Mapping[str, Any]) -> Iterator[GivenLabel]:
    newest = _newest(task.get("annotations") or ())
    if newest is None:
        return
    data = task["data"]
    session, turn = str(data["dialogue"]), int(data["turn"])
    answers = {result["from_name"]: result["value"] for result in newest["result"]}
    for kind in KINDS:
        if kind not in data["asked"]:
            continue
        values = answers.get(kind, {}).get(_FIELDS[kind], [])
        if kind == "category":
            if not values:
                continue  # nobody chose one: it stays open
            values = values[0]
        yield GivenLabel(session, turn, kind, checked_value(kind, values), _annotator(newest))


def _newest(annotations: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """By the time of its last change; of equals the later one in the file."""
    submitted = [one for one in annotations if not one.get("was_cancelled")]
    when = [str(one.get("updated_at") or one.get("created_at") or "") for one in submitted]
    return submitted[max(range(len(when)), key=lambda place: (when[place], place))] if submitted else None


def _annotator(annotation: Mapping[str, Any]) -> str | None:
    """The number of the account; never a name or an address."""
    by = annotation.get("completed_by")
    number = by.get("id") if isinstance(by, Mapping) else by
    return str(number) if isinstance(number, int) else None
