"""The results of a human evaluation as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vrbot.evaluation.human_criteria import CRITERION_KEYS
from vrbot.evaluation.human_scores import HumanScores, Mean
from vrbot.evaluation.tables import Cell, Table

HEADINGS = {
    "mep": "human MEP",
    "mer": "human MER",
    "reply": "prefer reply",
    "explanation": "prefer explanation",
    "keyword": "keyword explained",
    "entity": "entity accounted for",
}


def human_tables(found: HumanScores) -> tuple[Table, ...]:
    """Ratings, explanations, contests, agreement; a table without any value is left out."""
    notes = (_progress_note(found), "Means over dialogues with 95 % intervals (t distribution)")
    tables = [_means_table("Human ratings, 1 to 5", found.ratings, CRITERION_KEYS, notes)]
    if any(mean is not None for means in found.explanations.values() for mean in means.values()):
        tables.append(_means_table("Explainability by human marks", found.explanations, ("mep", "mer"), notes[1:]))
    if found.contests:
        tables.append(_contests_table(found))
    if found.agreement:
        tables.append(_agreement_table(found))
    return tuple(tables)


def _means_table(
    title: str, means: Mapping[str, Mapping[str, Mean | None]], names: Sequence[str], notes: Sequence[str]
) -> Table:
    best = {name: _best([one[name] for one in means.values()]) for name in names}
    rows = tuple(
        (
            Cell(system),
            *(_mean_cell(one[name], best[name]) for name in names),
            Cell(max((mean.num_judgements for mean in one.values() if mean is not None), default=0)),
        )
        for system, one in means.items()
    )
    return Table(title, ("system", *(HEADINGS.get(name, name) for name in names), "judgements"), rows, tuple(notes))


def _mean_cell(mean: Mean | None, best: float | None) -> Cell:
    return Cell(None) if mean is None else Cell(mean.mean, mean.low, mean.high, best=mean.mean == best)


def _best(means: Sequence[Mean | None]) -> float | None:
    there = [mean.mean for mean in means if mean is not None]
    return max(there) if len(there) > 1 else None


def _contests_table(found: HumanScores) -> Table:
    columns = ("first", "second", "about", "win %", "tie %", "loss %", "judgements", "dialogues", "ahead by")
    rows = []
    for one in found.contests:
        names = (one.first, one.second, HEADINGS.get(one.about, one.about))
        shares = [100 * count / one.num_judgements for count in (one.wins, one.ties, one.losses)]
        p_values = (one.p_sign, one.adjusted_p_sign, one.p_wilcoxon, one.adjusted_p_wilcoxon)
        numbers: list[float | int] = [*shares, one.num_judgements, one.num_dialogues, one.mean_difference, *p_values]
        rows.append((*(Cell(name) for name in names), *(Cell(number) for number in numbers)))
    notes = (
        "Win: the first is rated higher, or preferred. Two-sided tests over dialogues; corrected by Holm's method over "
        f"the {len(found.contests)} rows",
    )
    tests = ("p sign", "p sign corrected", "p Wilcoxon", "p Wilcoxon corrected")
    return Table("Systems against each other", (*columns, *tests), tuple(rows), notes, decimals=3)


def _agreement_table(found: HumanScores) -> Table:
    columns = ("question", "pairs of raters", "shared", "equal %", "Cohen's kappa", "quadratic kappa", "without kappa")
    rows = []
    for one in found.agreement:
        shared = sum(pair.num_shared for pair in one.pairs)
        undefined = sum(pair.kappa is None for pair in one.pairs)
        values = (len(one.pairs), shared, one.agreement, one.kappa, one.quadratic_kappa, undefined)
        rows.append((Cell(HEADINGS.get(one.question, one.question)), *(Cell(value) for value in values)))
    notes = (
        "Means over pairs of raters. Two raters who gave one same answer throughout have no kappa and are left out of "
        "its mean",
    )
    return Table("Agreement of raters", columns, tuple(rows), notes, decimals=3)


def _progress_note(found: HumanScores) -> str:
    asked, answered = sum(one.asked for one in found.progress), sum(one.answered for one in found.progress)
    raters = len({one.rater for one in found.progress if one.answered})
    return f"{answered} of {asked} answers by {raters} raters"
