"""A whole run: from a plan and a folder to trained weights, started afresh or resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from vrbot.config import Config
from vrbot.dialogue.batching import limits_of
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.manifest import A_RUN, kind_of
from vrbot.errors import UsageError
from vrbot.sealed import recover
from vrbot.training.checkpoints import CHOICES, RunFolder
from vrbot.training.description import RunDescription, RunPlan, corpus_digest, plan_differences
from vrbot.training.distributed import Workers, join_workers
from vrbot.training.interrupts import stop_on_signals
from vrbot.training.loop import LOSS, Trainer, TrainingData, Validate, turns_with
from vrbot.training.observe import MetricsTable, Observer, TensorBoard
from vrbot.training.progress import Progress
from vrbot.training.randomness import Use, derived_seed

ModelBuilder = Callable[[str, Config, Corpus], torch.nn.Module]
ValidationBuilder = Callable[[Corpus, Config], Validate]
Chooser = Callable[[torch.nn.Module, Corpus, Config], Mapping[str, Any]]
"""What is left to choose for a trained model on validation data, by name."""


@dataclass(frozen=True)
class RunOutcome:
    """How a call of `train_run` ended; "already finished" means that there was nothing to do."""

    status: Literal["finished", "interrupted", "already finished"]
    progress: Progress
    folder: Path


@dataclass(frozen=True)
class Parts:
    """What a run is made with: how models are built and judged, and who watches."""

    build: ModelBuilder
    validation: ValidationBuilder | None = None
    choose: Chooser | None = None
    measure: str = "micro_f1"
    observers: Sequence[Observer] = ()
    tensorboard: bool = True
    on_stop_wish: Callable[[], None] = lambda: None


def train_run(
    out: Path | str, plan: RunPlan | None, parts: Parts, *, resume: bool = False, threads: int | None = None
) -> RunOutcome:
    """Trains what is planned into the folder `out`, or goes on with the run there (`resume`; the plan may be None).

    Under torchrun every process calls it alike. SIGINT and SIGTERM end it after the step, with the state saved.
    """
    with join_workers() as workers, reproducible():
        folder = RunFolder(out)
        description = workers.by_the_first(lambda: _resumed(folder, plan)) if resume else None
        if description is not None:
            plan = description.plan
            torch.set_num_threads(threads or description.threads)
        elif threads is not None:
            torch.set_num_threads(threads)
        if plan is None:
            raise UsageError("a new run needs a model and a corpus")
        if description is None:
            workers.by_the_first(lambda: _refuse_existing(folder))
        corpus = Corpus.open(plan.corpus, verify=workers.is_first)
        if description is not None and corpus_digest(corpus) != description.corpus_sha256:
            raise UsageError(f"{plan.corpus} is not the corpus this run was started with: prepare that one again")
        torch.manual_seed(derived_seed(plan.seed, Use.INITIAL_WEIGHTS))
        model = parts.build(plan.model, plan.config, corpus)
        if description is None:
            _refuse_without_labels(plan, training_data(corpus, plan), getattr(model, "needed_labels", ()))
            workers.by_the_first(lambda: _create(folder, plan, corpus, model, parts))
        held: AbstractContextManager[None] = folder.locked() if workers.is_first else nullcontext()
        with held:
            return _train(folder, plan, parts, corpus, model, workers)


def _refuse_without_labels(plan: RunPlan, data: TrainingData, needed: Sequence[str]) -> None:
    """A model that learns only from turns with these labels would learn nothing without any."""
    if needed and not turns_with(data, needed).any():
        raise UsageError(
            f"{plan.model} learns only from turns whose {' and '.join(needed)} are labelled, and with --state-labels "
            f"{plan.labels.state:g} --action-labels {plan.labels.action:g} there are none in {plan.corpus}: "
            "raise the shares, or choose a model that needs no labels (see `vrbot models`)"
        )


def _train(
    folder: RunFolder, plan: RunPlan, parts: Parts, corpus: Corpus, model: torch.nn.Module, workers: Workers
) -> RunOutcome:
    """Trains in a folder that exists."""
    saved = workers.by_the_first(folder.progress)
    if saved is not None and saved.finished is not None:
        workers.by_the_first(lambda: _choose(folder, plan, parts, corpus, model))
        return RunOutcome("already finished", saved, folder.path)
    own: list[Observer] = [MetricsTable(folder.metrics)]
    if parts.tensorboard:
        own.append(TensorBoard(folder.tensorboard))
    trainer = Trainer(
        model,
        plan.config.training,
        training_data(corpus, plan),
        seed=plan.seed,
        validate=None if parts.validation is None else parts.validation(corpus, plan.config),
        measure=parts.measure,
        folder=folder,
        workers=workers,
        observers=[*own, *parts.observers],
    )
    if saved is not None:
        trainer.resume()
    with stop_on_signals(parts.on_stop_wish) as wants_to_stop:
        outcome = trainer.run(wants_to_stop)
        if outcome.status == "finished":
            workers.by_the_first(lambda: _choose(folder, plan, parts, corpus, model))
    return RunOutcome(outcome.status, outcome.progress, folder.path)


def _choose(folder: RunFolder, plan: RunPlan, parts: Parts, corpus: Corpus, model: torch.nn.Module) -> None:
    """Chooses what is left to choose for the best model, unless an earlier life of the run has done so."""
    if parts.choose is None or CHOICES in folder.load_best(model):
        return
    folder.add_to_best({CHOICES: dict(parts.choose(model.eval(), corpus, plan.config))})


def training_data(corpus: Corpus, plan: RunPlan) -> TrainingData:
    """The splits with the labels the plan allows; validation has the same share of labels as training."""
    train, valid = corpus.split("train"), corpus.split("valid")
    return TrainingData(
        train,
        valid,
        plan.labels.select(train.session_ids, plan.seed).masks(train),
        plan.labels.select(valid.session_ids, plan.seed).masks(valid),
        limits_of(plan.config.network),
    )


def open_run(out: Path | str) -> RunDescription:
    """What the run in a folder is; its files are verified."""
    kind = kind_of(Path(out))
    if kind not in (None, A_RUN):
        raise UsageError(f"{out} is {kind}, not a run: give the folder that `vrbot train` wrote")
    return RunDescription.from_files(RunFolder(out).description())


def _refuse_existing(folder: RunFolder) -> None:
    kind = kind_of(folder.path)
    if kind not in (None, A_RUN):
        raise UsageError(f"{folder.path} is {kind}, not a run: give --out another folder")
    if folder.exists:
        raise UsageError(f"{folder.path} holds a run: add --resume to go on with it, or give --out another folder")


def _create(folder: RunFolder, plan: RunPlan, corpus: Corpus, model: torch.nn.Module, parts: Parts) -> None:
    recover(folder.path)
    description = RunDescription.of(plan, corpus, model, parts.measure if parts.validation else LOSS)
    folder.create(description.files(plan.labels.select(corpus.split("train").session_ids, plan.seed)))


def _resumed(folder: RunFolder, plan: RunPlan | None) -> RunDescription:
    description = open_run(folder.path)
    if plan is not None:
        differences = plan_differences(description.plan, plan)
        if differences:
            raise UsageError(
                f"{folder.path} cannot be resumed with other settings: {'; '.join(differences)} "
                "(leave them out, or start a new run with another --out)"
            )
        description = replace(description, plan=replace(description.plan, corpus=plan.corpus))
    return description


@contextmanager
def reproducible() -> Iterator[None]:
    """Only algorithms that give the same bits every time, inside the block."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it the matrix products of CUDA vary
    former = torch.are_deterministic_algorithms_enabled()
    memory: Any = torch.utils.deterministic
    filling = memory.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    memory.fill_uninitialized_memory = False  # a guard against faults of programs, paid for at every new tensor
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(former)
        memory.fill_uninitialized_memory = filling
