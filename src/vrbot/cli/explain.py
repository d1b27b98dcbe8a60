"""`vrbot explain`: why a model replies as it does in one turn, and whether its explanations are true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vrbot.cli.printing import counting, note, say, say_table
from vrbot.errors import DataError, UsageError
from vrbot.files import atomic_write

if TYPE_CHECKING:
    from vrbot.agent.reply import Reply
    from vrbot.dialogue.corpus import Corpus
    from vrbot.explain.abstention import Guard
    from vrbot.explain.audit import Audit
    from vrbot.explain.confidence import Confidence
    from vrbot.explain.explainer import Explainer
    from vrbot.explain.keyword_confidence import KeywordConfidence

FAILED = 1
MOST = 0.8
"""The share of answers that are given where the least sure ones are withheld."""


# Long only because every option of the verb stands in its signature.
def explain(
    run: Annotated[Path, typer.Argument(help="The folder of a run, or of a saved model.")],
    corpus: Annotated[Path | None, typer.Option(help="The corpus the dialogue is in [the model's own].")] = None,
    dialogue: Annotated[str | None, typer.Option(help="The id of a dialogue.")] = None,
    turn: Annotated[int | None, typer.Option(min=1, help="Which turn of it, from 1 [1].")] = None,
    split: Annotated[str | None, typer.Option(help="Which split [all; the test split for --audit].")] = None,
    language: Annotated[str | None, typer.Option(help="zh or en [the model's].")] = None,
    state: Annotated[str | None, typer.Option(help="What if the state were this: names with commas.")] = None,
    category: Annotated[str | None, typer.Option(help="What if the action's category were this.")] = None,
    keywords: Annotated[str | None, typer.Option(help="What if the keywords were these: names with commas.")] = None,
    png: Annotated[Path | None, typer.Option(help="Draw it here as PNG (--audit: the reliability diagram).")] = None,
    svg: Annotated[Path | None, typer.Option(help="The same as SVG.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write it here as JSON.")] = None,
    note_file: Annotated[Path | None, typer.Option("--note", help="Write a consultation note: .md or .json.")] = None,
    audit: Annotated[Path | None, typer.Option(help="Check the explanations of this corpus instead.")] = None,
    turns: Annotated[int | None, typer.Option(min=1, help="How many turns --audit checks [all].")] = None,
    guard: Annotated[Path | None, typer.Option(help="Calibrated confidence: read, or written by --audit.")] = None,
) -> None:
    """Show where a reply's words, keywords and state came from; or audit the explanations of a whole split.

    With --state, --category or --keywords the model is asked again with that in place of what it infers.

    \b
    Example:
        vrbot explain runs/first --dialogue 12 --turn 2 --png why.png
        vrbot explain runs/first --audit corpora/clinic --turns 200 --guard guard.json
    """
    pictures = _pictures(png, svg)
    change = {"state": _listed(state), "category": category, "keywords": _listed(keywords)}
    if audit is not None:
        one_turn = {"corpus": corpus, "dialogue": dialogue, "turn": turn, "language": language, "note": note_file}
        _refuse_with_audit({**one_turn, **change})
        _audit(run, audit, split or "test", turns, guard, pictures, json_file)
        return
    if dialogue is None:
        raise UsageError("say which turn to explain with --dialogue ID --turn N, or audit a corpus with --audit CORPUS")
    if turns is not None:
        raise UsageError("--turns is how many turns --audit checks; one turn is named by --turn N")
    files = (pictures, json_file, note_file)
    _explain(run, corpus, (dialogue, turn or 1, split), change, language, guard, files)


def _refuse_with_audit(options: dict[str, Any]) -> None:
    given = [f"--{name}" for name, value in options.items() if value is not None]
    if given:
        raise UsageError(f"--audit explains the turns of a whole split: leave out {', '.join(given)}")


def _pictures(png: Path | None, svg: Path | None) -> list[Path]:
    """The pictures that are asked for, each with the ending of its kind."""
    for picture, ending in ((png, ".png"), (svg, ".svg")):
        if picture is not None and picture.suffix.lower() != ending:
            raise UsageError(f"{picture} does not end in {ending}: name the file so")
    return [picture for picture in (png, svg) if picture is not None]


def _explain(
    run: Path,
    corpus: Path | None,
    which: tuple[str, int, str | None],
    wanted: dict[str, Any],
    language: str | None,
    guard: Path | None,
    files: tuple[list[Path], Path | None, Path | None],
) -> None:
    from vrbot.explain.abstention import Guard
    from vrbot.explain.readable import printable, readable, words_of
    from vrbot.explain.steering import Change

    change = Change.from_dict(wanted)
    explainer, dialogues = _open(run, corpus, None if guard is None else Guard.load(guard))
    conversation = _conversation(dialogues, *which)
    language = language or explainer.agent.language
    words = words_of(language)
    reply = explainer.what_if(conversation, change)
    for number, (patient, physician) in enumerate(conversation, start=1):
        say(f"{words['patient']} {number}: {printable(patient)}")
        if number < len(conversation):
            say(f"{words['physician']} {number}: {printable(physician)}")
    for line in readable(reply, language):
        say(line)
    _write_files(explainer, conversation, reply, language, files)


def _write_files(
    explainer: Explainer,
    conversation: list[tuple[str, str]],
    reply: Reply,
    language: str,
    files: tuple[list[Path], Path | None, Path | None],
) -> None:
    from vrbot.explain.note import consultation_note, write_note
    from vrbot.explain.picture import draw

    pictures, json_file, note_file = files
    for picture in pictures:
        draw(reply, conversation, picture, language)
    if json_file is not None:
        _write_json(json_file, reply.to_dict())
    if note_file is not None:
        write_note(consultation_note(explainer, conversation), note_file, language)


def _audit(
    run: Path,
    corpus: Path,
    split: str,
    turns: int | None,
    guard_file: Path | None,
    pictures: list[Path],
    json_file: Path | None,
) -> None:
    from vrbot.explain.audit import audit
    from vrbot.explain.evidence import plain

    explainer, dialogues = _open(run, corpus, None)
    with counting("turns explained", turns) as done:
        found = audit(explainer, dialogues, split, turns, done=done)
    _say_audit(found)
    content: dict[str, Any] = {"run": str(run), "split": split, "passed": found.passed, **plain(found)}
    content |= _confidence(explainer, dialogues, split, guard_file, pictures)
    if json_file is not None:
        _write_json(json_file, content)
    if not found.passed:
        raise typer.Exit(FAILED)


def _confidence(
    explainer: Explainer, dialogues: Corpus, split: str, guard_file: Path | None, pictures: list[Path]
) -> dict[str, Any]:
    """Calibrates on the validation split and says how confidence fits on another; nothing where that cannot be."""
    from vrbot.dialogue.batching import limits_of
    from vrbot.explain.abstention import fit_guard
    from vrbot.explain.confidence import judged_turns, measure_confidence
    from vrbot.explain.confidence_picture import draw_confidence
    from vrbot.explain.evidence import plain
    from vrbot.explain.keyword_confidence import judged_keywords, measure_keyword_confidence

    labelled = {name for name in dialogues.split_names if (dialogues.split(name).labels.category >= 0).any()}
    if not {"valid", split} <= labelled or not explainer.has_action:
        note("confidence is not measured: it needs labelled categories in the validation split and in this one")
        return {}
    limits = limits_of(explainer.agent.config.network)
    guard = fit_guard(explainer.model, dialogues.split("valid"), limits)
    confidence = measure_confidence(judged_turns(explainer.model, dialogues.split(split), limits), guard.temperature)
    _say_confidence(confidence)
    found: dict[str, Any] = {"confidence": plain(confidence), "guard": plain(guard)}
    if guard.keywords is not None:
        judged = judged_keywords(explainer.model, dialogues.split(split), limits)
        keywords = measure_keyword_confidence(judged, guard.keywords)
        _say_keyword_confidence(keywords)
        found["keyword_confidence"] = plain(keywords)
    if guard_file is not None:
        guard.save(guard_file)
        note(f"guard written to {guard_file}")
    for picture in pictures:
        draw_confidence(confidence, picture)
    return found


def _say_audit(found: Audit) -> None:
    say(f"{found.num_turns:,} turns, {found.num_keywords:,} keywords, {found.num_words:,} words")
    for title, counts in (("must hold always", found.checks), ("should hold mostly", found.tests)):
        rows = [(name, count.good, count.tried, 100 * (count.share or 0.0)) for name, count in counts.items()]
        if rows:
            say()
            say_table((title, "good", "of", "%"), rows)
    for failure in found.failures:
        note(failure)
    say()
    say("the explanations are true" if found.passed else "some explanations are not true")


def _say_confidence(confidence: Confidence) -> None:
    say()
    say_table(
        ("confidence in the category", "value"),
        [
            ("labelled turns", confidence.num_turns),
            ("accuracy, %", 100 * confidence.accuracy),
            ("temperature", confidence.temperature),
            ("calibration error before, %", 100 * confidence.before.error),
            ("calibration error after, %", 100 * confidence.after.error),
            ("area under risk-coverage, %", 100 * confidence.risk_coverage.area),
            ("best possible area, %", 100 * confidence.risk_coverage.best_area),
            ("wrong among all, %", 100 * confidence.risk_coverage.at(1.0)),
            (f"wrong among the surest {MOST:.0%}, %", 100 * confidence.risk_coverage.at(MOST)),
        ],
    )


def _say_keyword_confidence(confidence: KeywordConfidence) -> None:
    say()
    say_table(
        ("confidence in keywords", "value"),
        [
            ("named keywords", confidence.num_keywords),
            ("right, %", 100 * confidence.precision),
            ("scale", confidence.form),
            ("calibration error before, %", 100 * confidence.before.error),
            ("calibration error after, %", 100 * confidence.after.error),
            ("wrong among all, %", 100 * confidence.risk_coverage.at(1.0)),
            (f"wrong among the surest {MOST:.0%}, %", 100 * confidence.risk_coverage.at(MOST)),
        ],
    )


def _open(run: Path, corpus: Path | None, guard: Guard | None) -> tuple[Explainer, Corpus]:
    """The explainer of a run and the corpus whose dialogues are meant, which must fit it."""
    from vrbot.dialogue.corpus import Corpus
    from vrbot.explain.explainer import Explainer

    try:
        explainer = Explainer.from_pretrained(run, guard=guard)
    except DataError:
        if corpus is None:
            raise
        explainer = Explainer.from_pretrained(run, corpus=corpus, guard=guard)
    own = explainer.agent.pretrained.corpus
    dialogues = own if corpus is None else Corpus.open(corpus)
    if dialogues.fingerprint != own.fingerprint:
        raise UsageError(
            f"{corpus} has other words, entities or graph than the model of {run}: prepare its dialogues to fit with "
            f"`vrbot prepare SOURCE --out FOLDER --like {own.directory}`"
        )
    if not dialogues.split_names:
        raise UsageError(f"{run} holds a model and no dialogues: say where they are with --corpus")
    return explainer, dialogues


def _conversation(corpus: Corpus, dialogue: str, turn: int, split: str | None) -> list[tuple[str, str]]:
    """The dialogue up to a turn, without its answer."""
    for name in corpus.split_names if split is None else (split,):
        ids = corpus.split(name).session_ids
        if dialogue in ids:
            session = corpus.session(name, ids.index(dialogue))
            if turn > len(session.turns):
                raise UsageError(f"dialogue {dialogue} has {len(session.turns)} turns: choose one of them, not {turn}")
            said = [(each.patient, each.physician) for each in session.turns[:turn]]
            return [*said[:-1], (said[-1][0], "")]
    where = "any split" if split is None else f"split {split}"
    raise UsageError(f"there is no dialogue {dialogue!r} in {where} of {corpus.directory}")


def _listed(text: str | None) -> list[str] | None:
    """Names between commas, also Chinese ones; None where nothing is given, no names for an empty text."""
    if text is None:
        return None
    return [name.strip() for name in text.replace("，", ",").split(",") if name.strip()]


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with atomic_write(path) as file:
        json.dump(content, file, ensure_ascii=False, indent=2, allow_nan=False)
        file.write("\n")
