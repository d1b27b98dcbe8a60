"""What people look at: blind sheets for judges (Table 4), and one dialogue as every system continues it (Table 7)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vrbot.agent.respond import Conversation
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.session import CATEGORIES, Session
from vrbot.evaluation.human_folders import write_folder
from vrbot.evaluation.human_sample import SampleSettings, draw_study
from vrbot.evaluation.human_systems import Field, read_field
from vrbot.evaluation.reply_files import read_replies
from vrbot.evaluation.tables import Cell, Table
from vrbot.evaluation.turns import Latents, ScoredTurn
from vrbot.experiments.folder import RUN
from vrbot.experiments.results import SystemRuns
from vrbot.explain.explainer import Explainer
from vrbot.explain.readable import reasons

MOST_DIALOGUES = 100
EARLIEST_TURN = 1
TEST = "test"


def trained_replies(systems: Sequence[SystemRuns]) -> dict[str, Path] | None:
    """The replies of every trained system in its first run; None while one is missing."""
    trained = [one for one in systems if one.row is not None]
    if not trained or any(not one.runs for one in trained):
        return None
    return {one.name: path for one in trained if (path := one.runs[0].replies) is not None}


def draw_sheets(out: Path, systems: Sequence[SystemRuns], corpus: Corpus, seed: int = 1) -> bool:
    """Draws blind sheets into `out`; False where they are drawn already (they may hold ratings) or runs are missing."""
    replies = trained_replies(systems)
    if replies is None or out.exists():
        return False
    found = read_field(list(replies.values()))
    named = [replace(one.source, name=name) for name, one in zip(replies, found.systems, strict=True)]
    answers = tuple(replace(one, source=source) for one, source in zip(found.systems, named, strict=True))
    field = Field(answers, found.names)
    dialogues = min(MOST_DIALOGUES, len({turn.session_id for turn in answers[0].turns}))
    places = {name: number for number, name in enumerate(corpus.split(TEST).session_ids)}

    def conversation(name: str) -> Session:
        return corpus.session(TEST, places[name])

    write_folder(out, draw_study(field, SampleSettings(dialogues, seed=seed), conversation), field, seed)
    return True


def case_table(systems: Sequence[SystemRuns], corpus: Corpus, title: str) -> Table | None:
    """One turn, drawn by a hash and not by its outcome, of those that name entities after something was said."""
    replies = trained_replies(systems)
    if replies is None:
        return None
    numbers = {name: number for number, name in enumerate(corpus.inventory.names)}
    turns = {name: read_replies(path, numbers) for name, path in replies.items()}
    place = _choose(next(iter(turns.values())))
    if place is None:
        return None
    here = next(iter(turns.values()))[place]
    session = corpus.session(TEST, corpus.split(TEST).session_ids.index(here.session_id))
    names = list(numbers)
    rows = [(f"U{number + 1}", turn.patient) for number, turn in enumerate(session.turns[: here.turn + 1])]
    rows += [(f"R{number + 1}", turn.physician) for number, turn in enumerate(session.turns[: here.turn])]
    rows.sort(key=lambda row: (int(row[0][1:]), row[0][0] == "R"))
    rows += [("physician", here.reference), *_latent_rows("labelled", here.gold, names)]
    said = [(turn.patient, turn.physician) for turn in session.turns[: here.turn]]
    conversation = [*said, (session.turns[here.turn].patient, "")]
    explained = {one.name for one in systems if one.role == "ours"}
    for name, answered in turns.items():
        rows += _latent_rows(name, answered[place].prior, names)
        if name in explained:
            rows += [(f"{name}: why", line) for line in _reasons(replies[name].parent / RUN, corpus, conversation)]
        rows.append((f"{name}: reply", answered[place].reply))
    cells = tuple((Cell(who), Cell(said)) for who, said in rows)
    return Table(title, ("who", "what"), cells, ("The turn was drawn by a hash of its name, not for its outcome",))


def _reasons(run: Path, corpus: Corpus, conversation: Conversation) -> list[str]:
    """What the run's model says its state and action rest on; nothing where the model was not kept."""
    if not run.is_dir():
        return []
    reply = Explainer.from_pretrained(run, corpus=corpus.directory).respond(conversation)
    return [line for line in reasons(reply, "en") if line]


def _choose(turns: Sequence[ScoredTurn]) -> int | None:
    suitable = [
        place for place, turn in enumerate(turns) if turn.turn >= EARLIEST_TURN and turn.reference_entities
    ] or list(range(len(turns)))
    return min(suitable, key=lambda place: _rank(turns[place]), default=None)


def _rank(turn: ScoredTurn) -> bytes:
    return hashlib.sha256(f"case {turn.session_id} {turn.turn}".encode()).digest()


def _latent_rows(who: str, latents: Latents, names: Sequence[str]) -> list[tuple[str, str]]:
    rows = []
    if latents.state is not None:
        rows.append((f"{who}: state", ", ".join(names[entity] for entity in latents.state)))
    category = [] if latents.category is None else [CATEGORIES[latents.category]]
    if category or latents.keywords is not None:
        keywords = [names[entity] for entity in latents.keywords or ()]
        rows.append((f"{who}: action", ", ".join([*category, *keywords])))
    return rows
