"""`vrbot demo`: simulate the clinic, train a small model on it, and open the physician's console over it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vrbot.cli.chat import WORDS, ReplyScreen, check_language, talk
from vrbot.cli.printing import note, say, say_table
from vrbot.clinic.simulate import NOTICE, SimulationSettings, simulate_corpus
from vrbot.config import Config, recipe
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.dialogue.preparation_knowledge import KnowledgeFiles
from vrbot.errors import UsageError, VRBotError

if TYPE_CHECKING:
    from vrbot.agent.chat import Chat
    from vrbot.agent.respond import Agent
    from vrbot.serving.running import Plan
    from vrbot.serving.service import Desk
    from vrbot.training.description import RunPlan
    from vrbot.training.observe import Observer

MODEL, DIALOGUES, SEED = "vrbot", 800, 1
SETTINGS: Mapping[str, Any] = {
    "network.embedding_size": 64,
    "network.hidden_size": 64,
    "network.dropout": 0.1,
    "policy.graph_size": 32,
    "policy.subgraph_limit": 80,
    "policy.learning_rate_factor": 0.4,
    "policy.at_least_one": True,
    "training.batch_size": 6,
    "training.max_epochs": 4,
    "training.validate_every_epochs": 4.0,
    "decoding.word_reward": 1.25,
}
"""Of the small recipe, changed so that training takes minutes; what a word is worth is not looked for. Who talks
to it hears questions that ask for something (`at_least_one`)."""

SEGMENTERS = {"zh": "rjieba", "en": "spaces"}
MARK = "demo.json"
INTERRUPTED = 130
SAMPLES = {
    "zh": ("我咳嗽三天了，有点发烧，怎么回事？", "没有。需要吃什么药吗？"),
    "en": ("I have had a cough and a fever for three days. What is it?", "No. Is there a medicine I can take?"),
}


def demo(
    no_serve: Annotated[bool, typer.Option("--no-serve", help="No console: a chat, or two samples.")] = False,
    language: Annotated[str, typer.Option(help="zh or en.")] = "zh",
    host: Annotated[str, typer.Option(help="Where the console listens; this machine only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where the console listens.")] = 8080,
    cache: Annotated[Path | None, typer.Option(help="Where everything is kept [build/demo-LANGUAGE].")] = None,
) -> None:
    """Simulate the clinic, train a small model on it (some minutes, the first time only), and open the console.

    The console needs no sign-in here, and listens on this machine only. Its consultations are kept with the model.
    With --no-serve the demo ends in a chat on a terminal; elsewhere it answers two questions.

    \b
    Example:
        vrbot demo --language en
    """
    check_language(language)
    folder = cache or Path("build") / f"demo-{language}"
    _check_cache(folder)
    plan = None if no_serve else console_plan(folder, host, port)
    _claim(folder)
    corpus = prepared_clinic(folder, language)
    agent = trained_agent(folder / "run", corpus)
    _say_scores(agent)
    note(NOTICE)
    if plan is not None:
        serve_console(folder, replace(plan, guard=_guard(folder, agent)), language)
        return

    from vrbot.agent.chat import Chat

    chat = Chat(agent)
    if sys.stdin.isatty():
        talk(chat, language)
    else:
        _show_samples(chat, language)


def console_plan(folder: Path, host: str, port: int) -> Plan:
    """What is served, all of it kept with the model; UsageError for other machines, or a port that is in use."""
    from vrbot.safety.switch import KillSwitch
    from vrbot.serving.api.settings import AppSettings
    from vrbot.serving.running import Plan, bound

    settings = AppSettings(open_demo=True, switch=KillSwitch(folder / "drafts-off.json"))
    plan = Plan(folder / "run", str(folder / "desk.sqlite"), settings, host=host, port=port)
    bound(host, port).close()  # who has to wait for the training hears of it before
    return plan


def serve_console(folder: Path, plan: Plan, language: str) -> None:
    """The console over the demo's model until Ctrl-C, with sample consultations the first time."""
    from vrbot.serving import running
    from vrbot.serving.api.settings import DEMO_PHYSICIAN
    from vrbot.serving.console.samples import seed_samples

    def with_samples(desk: Desk) -> None:
        if seed_samples(desk, DEMO_PHYSICIAN, language):
            note("sample consultations are there, in both languages")

    def told() -> None:
        say(f"The console is open at http://{plan.host}:{plan.port} (Ctrl-C ends it)")
        sys.stdout.flush()

    secret = running.kept_secret(folder / "secret.txt")  # patients' links outlive the server
    plan = replace(plan, settings=replace(plan.settings, secret=secret))
    make = partial(running.open_app, prepare=with_samples)
    with suppress(KeyboardInterrupt):
        running.serve(plan, running.bound(plan.host, plan.port), make, told)


def _guard(folder: Path, agent: Agent) -> Path:
    """How sure the model may say it is; worked out once for each model."""
    from vrbot.dialogue.batching import limits_of
    from vrbot.explain.abstention import Guard, fit_guard
    from vrbot.serving.responder import fingerprint_of

    path = folder / f"guard-{fingerprint_of(agent.pretrained)[:16]}.json"
    if path.is_file():
        try:
            Guard.load(path)
            return path
        except VRBotError:
            note("calibrating anew: the cached guard cannot be read")
    corpus = Corpus.open(folder / "corpus")
    model: Any = agent.pretrained.model
    fit_guard(model, corpus.split("valid"), limits_of(agent.config.network)).save(path)
    return path


def demo_config() -> Config:
    """The settings the demo trains with."""
    return recipe("small").with_settings(SETTINGS)


def _check_cache(folder: Path) -> None:
    """Refuses a folder with something of somebody else's in it."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / MARK).is_file())):
        raise UsageError(f"{folder} is not the cache of a demo: give --cache a new folder")


def _claim(folder: Path) -> None:
    """Makes the folder the demo's own; what is in it may then be made anew."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(json.dumps({"what": "made by `vrbot demo`; may be deleted"}) + "\n", encoding="utf-8")


def prepared_clinic(folder: Path, language: str) -> Path:
    """The prepared corpus of the clinic; made unless it is there, as it would be made now."""
    dialogues, corpus = folder / "dialogues", folder / "corpus"
    simulation = SimulationSettings(DIALOGUES, SEED, language)
    if not _is_simulated(dialogues, simulation):
        note(f"simulating {DIALOGUES:,} consultations")
        simulate_corpus(dialogues, simulation, overwrite=True)
    files = KnowledgeFiles(
        graph=dialogues / "graph.csv", lexicon=dialogues / "lexicon.json", entities=dialogues / "entities.csv"
    )
    if not _is_prepared(corpus, files, language):
        note("preparing the corpus")
        shutil.rmtree(corpus, ignore_errors=True)
        prepare(dialogues, corpus, PreparationSettings(knowledge=files, segmenter=SEGMENTERS[language]))
    return corpus


def _is_simulated(dialogues: Path, settings: SimulationSettings) -> bool:
    try:
        record = json.loads((dialogues / "simulation.json").read_text(encoding="utf-8"))
        return bool(record["settings"] == json.loads(json.dumps(asdict(settings))))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _is_prepared(corpus: Path, files: KnowledgeFiles, language: str) -> bool:
    try:
        settings = Corpus.open(corpus).manifest.settings
    except VRBotError:
        return False
    return bool(settings["segmenter"] == SEGMENTERS[language] and settings["knowledge"] == files.hashes())


def trained_agent(run: Path, corpus: Path) -> Agent:
    """The agent of the demo's run: trained now, or as far as that was not done before."""
    from vrbot.agent.respond import Agent
    from vrbot.baselines.catalogue import build_model
    from vrbot.evaluation.validation import MERIT, build_validation, choose_decoding
    from vrbot.training.checkpoints import RunFolder
    from vrbot.training.description import RunPlan
    from vrbot.training.runs import Parts, train_run

    plan = RunPlan(MODEL, corpus, demo_config(), SEED)
    if run.exists() and not (_is_run_of(run, plan) and _fits(run)):
        note("training anew: the cached model is another one")
        shutil.rmtree(run)
    progress = RunFolder(run).progress() if run.exists() else None
    if progress is None or progress.finished is None:
        note("training; this takes some minutes, once (Ctrl-C stops, the same command goes on)")
        parts = Parts(build_model, build_validation, choose_decoding, MERIT, observers=_observers(), tensorboard=False)
        outcome = train_run(run, plan, parts, resume=run.exists())
        if outcome.status == "interrupted":
            note("stopped; everything is saved, the same command goes on")
            raise typer.Exit(INTERRUPTED)
    return Agent.from_pretrained(run)


def _is_run_of(run: Path, plan: RunPlan) -> bool:
    from vrbot.training.description import corpus_digest, plan_differences
    from vrbot.training.runs import open_run

    try:
        description = open_run(run)
        return not plan_differences(description.plan, plan) and (
            corpus_digest(Corpus.open(plan.corpus)) == description.corpus_sha256
        )
    except VRBotError:
        return False


def _fits(run: Path) -> bool:
    """Whether a finished model has the parts of this version; one that is still to be trained is left to training."""
    from vrbot.agent.pretrained import load_pretrained
    from vrbot.training.checkpoints import RunFolder

    progress = RunFolder(run).progress()
    if progress is None or progress.finished is None:
        return True
    try:
        load_pretrained(run)
    except VRBotError:
        return False
    return True


def _observers() -> list[Observer]:
    """A bar on a terminal, lines elsewhere."""
    from vrbot.training.observe import Lines, TerminalBar

    if not sys.stderr.isatty():
        return [Lines(note)]
    from rich.console import Console

    return [TerminalBar(Console(stderr=True))]


def _say_scores(agent: Agent) -> None:
    facts = agent.facts
    say(f"{facts.model}: {facts.parameters:,} parameters, best after step {facts.step}; on validation dialogues:")
    say_table(("measure", "score"), [(name, score) for name, score in facts.scores.items() if score is not None])


def _show_samples(chat: Chat, language: str) -> None:
    screen = ReplyScreen(WORDS[language])
    for text in SAMPLES[language]:
        say(f"\n{WORDS[language]['patient']}: {text}")
        screen.show(chat.say(text))
