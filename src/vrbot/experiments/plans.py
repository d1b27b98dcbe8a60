"""The paper's tables and figures as plans, and some that go beyond it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from vrbot.baselines.catalogue import CATALOGUE
from vrbot.errors import UsageError
from vrbot.experiments.annotation_plan import annotation_plan
from vrbot.experiments.category_leak_plan import category_leak_plan
from vrbot.experiments.design import ALL_LABELS, UNLABELLED, Plan, Row
from vrbot.experiments.selections import HeldOut, TrainShare
from vrbot.training.description import LabelFractions

ABLATIONS = ("vrbot-no-state", "vrbot-no-action", "vrbot-no-graph", "vrbot-no-context", "vrbot-joint")
WITHOUT_LABELS = ("seq2seq", "hred", "vhred", "ccm", "sedst", "postks", "transformer", "dual-flow")
QUARTER = LabelFractions(0.25, 0.25)
STATE, KEYWORDS, CATEGORY = "state", "keywords", "category"
CHINESE = "a prepared corpus; the paper's are KaMed and MedDialog"


def _own_settings(model: str, labels: LabelFractions) -> Mapping[str, Any]:
    """SEDST without state labels reconstructs the context, as its authors do."""
    if model == "sedst" and not labels.state:
        return {"sedst.reconstruct_context": True}
    return {}


def _baseline(model: str, labels: LabelFractions = UNLABELLED) -> Row:
    return Row(model, model, labels, settings=_own_settings(model, labels))


def _with_habits(row: Row) -> Row:
    """The strongest other system, given what decision 0024 gave VRBot: whose doing is a lead?"""
    return replace(row, name=row.name.replace("dual-flow", "dual-flow-habits"), settings={"flows.habits": True})


def _unlabelled() -> Plan:
    rows = (
        *map(_baseline, WITHOUT_LABELS),
        _with_habits(_baseline("dual-flow")),
        Row("vrbot", "vrbot", role="ours", oracle=True),
    )
    return Plan(
        "unlabelled",
        "Replies without any labels",
        "Table 2",
        rows,
        CHINESE,
        published=("kamed", "meddialog", "meddg-protocol"),
    )


def _graded(model: str, state: Iterable[int], action: Iterable[int], group: str = "both") -> list[Row]:
    """A model at pairs of label shares in percent."""
    rows = []
    for state_share, action_share in zip(state, action, strict=True):
        labels = LabelFractions(state_share / 100, action_share / 100)
        level = f"{group} {max(state_share, action_share)} %"
        ours = model in ("vrbot", "vrbot-un", "vrbot-bert")
        name = f"{model}-s{state_share}-a{action_share}"
        settings, oracle = _own_settings(model, labels), name == "vrbot-s100-a100"
        rows.append(Row(name, model, labels, "ours" if ours else "baseline", level, settings, oracle=oracle))
    return rows


def _semi_supervised() -> Plan:
    levels = (25, 50, 100)
    rows = (
        *_graded("sedst", (25, 50), (0, 0), "states only"),
        *_graded("labes", (25, 50), (0, 0), "states only"),
        *_graded("nkd", (0, 0, 0), levels),
        *_graded("postks", (0, 0, 0), levels),
        *_graded("hred-bert", (0, 0, 0, 0), (10, *levels)),
        *_graded("dual-flow", (0, 0, 0), levels),
        *map(_with_habits, _graded("dual-flow", (0,), (25,))),
        *_graded("damd", levels, levels),
        *_graded("moss", levels, levels),
        *_graded("vrbot-un", (25, 50), (25, 50)),
        *_graded("vrbot", (25, 50), (0, 0), "states only"),
        *_graded("vrbot", (10, *levels), (10, *levels)),
        *_graded("vrbot-bert", (50, 100), (50, 100)),
    )
    return Plan(
        "semi-supervised",
        "Replies with labels for a share of the dialogues",
        "Table 3",
        rows,
        "a prepared corpus with state and action labels; the paper's is MedDG",
        needs_labels=(STATE, KEYWORDS),
        published=("meddg", "meddg-protocol"),
    )


def _taken_apart(labels: LabelFractions) -> tuple[Row, ...]:
    """The paper's ablations, what decision 0024 added taken out again, and the whole."""
    parts = [Row(name, name, labels, role="ours") for name in ABLATIONS]
    without_habits = Row("vrbot-no-habits", "vrbot", labels, role="ours", settings={"policy.habits": 0})
    return (*parts, without_habits, Row("vrbot", "vrbot", labels, role="ours", oracle=True))


def _ablations() -> Plan:
    return Plan(
        "ablations",
        "VRBot with one part taken out",
        "Table 5",
        _taken_apart(UNLABELLED),
        CHINESE,
        against="vrbot",
        published=("kamed-ablations", "meddialog-ablations"),
    )


def _labelled_ablations() -> Plan:
    return Plan(
        "labelled-ablations",
        "VRBot with one part taken out, a quarter of the dialogues labelled",
        "beyond the paper",
        _taken_apart(QUARTER),
        "a prepared corpus with state and action labels",
        needs_labels=(STATE, KEYWORDS),
        against="vrbot",
    )


def _span_lengths() -> Plan:
    states = [
        Row(
            f"state-{length}",
            "vrbot",
            role="ours",
            settings={"tracker.length": length, "policy.length": 3},
            curve="length of the state |S|, with |A| = 3",
            place=length,
        )
        for length in (4, 6, 8, 10, 12)
    ]
    actions = [
        Row(
            f"action-{length}",
            "vrbot",
            role="ours",
            settings={"tracker.length": 10, "policy.length": length},
            curve="length of the action |A|, with |S| = 10",
            place=length,
        )
        for length in (1, 2, 3, 4, 5)
    ]
    return Plan(
        "span-lengths",
        "The effect of the span lengths",
        "Figure 5",
        (*states, *actions),
        "a prepared corpus; the paper's is MedDialog",
        axis="span length",
        drawn=("micro_precision", "micro_recall", "micro_f1"),
    )


def _explainability() -> Plan:
    rows = (_baseline("postks"), Row("vrbot", "vrbot", role="ours"))
    needs = "a prepared corpus with a graph; the paper's is KaMed"
    title = "Whether action keywords are explained (MEP, MER)"
    return Plan("explainability", title, "Table 6", rows, needs, published=("kamed-explainability",))


def _case() -> Plan:
    rows = (_baseline("sedst"), _baseline("postks"))
    ours = Row("vrbot", "vrbot", role="ours")
    title = "One dialogue as every system continues it"
    return Plan("case", title, "Table 7", (*rows, ours), CHINESE, seeds=(1,), study="case")


def _human() -> Plan:
    rows = tuple(
        Row(model, model, QUARTER, "ours" if model == "vrbot" else "baseline") for model in ("damd", "moss", "vrbot")
    )
    needs = "a prepared corpus with state and action labels; the paper's is MedDG"
    title = "Blind sheets for human judges, with a quarter of the labels"
    labels = (STATE, KEYWORDS)
    return Plan("human", title, "Table 4", rows, needs, seeds=(1,), study="human", needs_labels=labels)


def _latents() -> Plan:
    rows = []
    for model, shares in (("vrbot", (0, 5, 10, 25, 50, 100)), ("vrbot-un", (5, 10, 25, 50, 100))):
        for share in shares:
            labels = LabelFractions(share / 100, share / 100)
            rows.append(Row(f"{model}-l{share}", model, labels, "ours", curve=model, place=share))
    return Plan(
        "latents",
        "How well states and actions are recovered, from no labels to all",
        "beyond the paper",
        tuple(rows),
        "a prepared corpus whose labels people made, or the clinic, which knows the truth",
        axis="dialogues with labels (%)",
        drawn=("state_f1", "action_f1", "category_accuracy"),
        needs_labels=(STATE, KEYWORDS, CATEGORY),
    )


def _learning_curve() -> Plan:
    rows = [
        Row(
            f"{model}-d{share}",
            model,
            ALL_LABELS,
            "ours" if model == "vrbot" else "baseline",
            f"{share} %",
            part=TrainShare(share / 100),
            curve=model,
            place=share,
        )
        for model in ("seq2seq", "vrbot")
        for share in (10, 25, 50, 100)
    ]
    return Plan(
        "learning-curve",
        "The effect of the corpus's size, at about the same number of updates",
        "beyond the paper",
        tuple(rows),
        "any prepared corpus",
        axis="training dialogues (%)",
        drawn=("micro_f1", "bleu_2", "action_f1"),
    )


def _transfer() -> Plan:
    rows = [
        Row(
            f"{model}-{'seen' if seen else 'unseen'}",
            model,
            ALL_LABELS,
            "ours" if model == "vrbot" else "baseline",
            "seen" if seen else "unseen",
            part=HeldOut(seen),
        )
        for model in ("seq2seq", "vrbot")
        for seen in (True, False)
    ]
    return Plan(
        "transfer",
        "A department that training never saw",
        "beyond the paper",
        tuple(rows),
        "dialogues with the key department (the clinic) or diagnosis (IMCS) in their lines",
        references=False,
    )


def _all_models() -> Plan:
    rows = tuple(
        Row(name, name, ALL_LABELS, "ours", oracle=name == "vrbot")
        if name.startswith("vrbot")
        else _baseline(name, ALL_LABELS)
        for name in CATALOGUE
    )
    needs = "a prepared corpus with labels, such as MedDG"
    return Plan("all-models", "Every model once", "Tables 2, 3 and 5", rows, needs, seeds=(1,))


SMOKE_SETTINGS: Mapping[str, Any] = {
    "network.embedding_size": 8,
    "network.hidden_size": 8,
    "network.max_context": 30,
    "network.max_response": 12,
    "policy.graph_size": 8,
    "policy.subgraph_limit": 8,
    "training.max_epochs": 2,
    "training.batch_size": 4,
    "decoding.max_length": 8,
}


def _smoke() -> Plan:
    half = LabelFractions(0.5, 0.5)
    rows = (Row("seq2seq", "seq2seq", half), Row("vrbot", "vrbot", half, "ours", oracle=True))
    needs = "nothing: without --corpus a few consultations are simulated"
    title = "Whether everything works, in moments"
    return Plan("smoke", title, "none", rows, needs, seeds=(1, 2), settings=SMOKE_SETTINGS)


_BUILDERS = (
    _unlabelled,
    _semi_supervised,
    _human,
    _ablations,
    _labelled_ablations,
    _span_lengths,
    _explainability,
    _case,
    _latents,
    _learning_curve,
    _transfer,
    annotation_plan,
    category_leak_plan,
    _all_models,
    _smoke,
)
PLANS: Mapping[str, Plan] = {plan.name: plan for plan in (build() for build in _BUILDERS)}


def plan_of(name: str) -> Plan:
    """The plan of this name, or a UsageError that lists them."""
    if name not in PLANS:
        raise UsageError(f"{name!r} is not a plan; known: {', '.join(PLANS)}")
    return PLANS[name]
