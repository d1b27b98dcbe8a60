"""Figures that others published, as data; a report shows them only beside runs on the same dialogues.

From the paper: Tables 2, 3, 5 and 6. Under protocol `meddg`: what DFMed, MedRef and later work report on MedDG.
Figure 5 gives no numbers and Table 4 is of people's ratings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.comparison import VRBOT_COLUMNS

PAPER = "the paper"
ENTITY_COLUMNS = ("macro_f1", "micro_f1", "embedding_average", "embedding_greedy")
ABLATION_COLUMNS = ("micro_f1", "embedding_average", "embedding_greedy")


@dataclass(frozen=True)
class Dataset:
    """How many dialogues a published dataset has, and by what its words were cut."""

    name: str
    dialogues: tuple[int, int, int]
    segmenter: str = "pkuseg"

    def fits(self, corpus: Corpus) -> bool:
        """Whether a prepared corpus holds these splits, cut in this way."""
        splits = corpus.manifest.counts["splits"]
        found = tuple(splits[name]["dialogues"] if name in splits else 0 for name in ("train", "valid", "test"))
        return found == self.dialogues and corpus.manifest.settings["segmenter"] == self.segmenter


@dataclass(frozen=True)
class Published:
    """A table of somebody's: the figures of each system under each metric, in percent.

    `other_rules` are metrics that go by rules a report does not use: no figures to stand in one column with ours.
    """

    by: str
    dataset: Dataset
    protocol: str
    figures: Mapping[str, Mapping[str, float]]
    other_rules: Mapping[str, str] = field(default_factory=dict)

    @property
    def comparable(self) -> dict[str, dict[str, float]]:
        """The figures without those of other rules."""
        return {
            name: {metric: figure for metric, figure in figures.items() if metric not in self.other_rules}
            for name, figures in self.figures.items()
        }


OWN_VECTORS = {"embedding_average": "by vectors of their own", "embedding_greedy": "by vectors of their own"}
CUMULATIVE = {"character_bleu_4": "cumulative"}

KAMED = Dataset("KaMed", (57_754, 3_000, 3_000))
MEDDIALOG = Dataset("MedDialog", (32_723, 3_000, 3_000))
MEDDG = Dataset("MedDG", (14_864, 2_000, 1_000))


def _table(columns: tuple[str, ...], rows: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Figures written in a line for each system."""
    return {name: dict(zip(columns, map(float, figures.split()), strict=True)) for name, figures in rows.items()}


_TABLE_2_KAMED = {
    "seq2seq": "2.71 1.58 1.24 6.85 24.82 11.14 15.38 27.60 12.78 17.47 27.93 27.75",
    "hred": "2.59 1.59 1.17 6.65 27.14 11.28 15.94 28.36 12.82 17.65 27.79 27.75",
    "vhred": "2.49 1.55 1.15 6.42 28.65 11.18 16.08 28.36 12.61 17.46 27.44 27.36",
    "ccm": "2.42 1.47 0.51 2.12 19.05 10.59 13.61 23.53 14.49 17.93 33.64 33.44",
    "sedst": "2.40 1.39 0.43 2.19 26.45 10.92 15.46 28.86 13.81 18.68 31.85 31.64",
    "postks": "2.52 1.44 1.00 5.55 25.18 11.34 15.64 26.01 14.15 18.33 29.76 29.61",
    "vrbot": "2.89 1.97 1.61 9.30 22.91 17.00 19.52 26.35 18.84 21.97 43.18 43.11",
}
_TABLE_2_MEDDIALOG = {
    "seq2seq": "3.13 1.11 1.62 8.11 23.73 8.54 12.56 25.65 8.97 13.29 20.53 21.95",
    "hred": "2.56 0.85 1.72 8.54 23.38 8.77 12.75 25.34 8.79 13.06 20.64 21.97",
    "vhred": "2.82 1.01 1.74 8.84 26.23 8.87 13.26 26.29 9.00 13.41 20.15 21.43",
    "ccm": "3.29 1.14 1.42 6.91 20.36 9.49 12.94 20.68 10.82 14.21 26.51 27.81",
    "sedst": "2.37 0.89 0.72 3.13 22.82 8.00 11.85 24.81 8.06 12.17 20.13 21.23",
    "postks": "3.26 1.27 1.63 8.48 25.53 9.81 14.17 21.60 10.15 13.81 24.38 25.76",
    "vrbot": "3.96 1.45 2.14 12.18 22.77 14.11 17.42 23.50 14.73 18.11 34.51 36.79",
}
_TABLE_3 = {
    "sedst-s25-a0": "13.50 20.94 22.39 33.19",
    "sedst-s50-a0": "12.29 19.97 23.12 33.59",
    "labes-s25-a0": "12.80 20.05 23.31 33.20",
    "labes-s50-a0": "12.28 20.02 23.40 33.88",
    "nkd-s0-a25": "5.45 16.40 20.46 29.64",
    "nkd-s0-a50": "6.15 18.89 22.10 32.03",
    "nkd-s0-a100": "8.92 21.68 23.77 34.48",
    "postks-s0-a25": "9.33 22.07 24.04 34.89",
    "postks-s0-a50": "9.44 22.34 24.55 35.58",
    "postks-s0-a100": "9.68 22.19 24.90 36.08",
    "hred-bert-s0-a10": "8.74 18.15 23.21 33.47",
    "hred-bert-s0-a25": "12.24 22.57 26.17 37.92",
    "hred-bert-s0-a50": "14.91 23.83 27.36 39.58",
    "hred-bert-s0-a100": "15.52 25.57 28.42 41.13",
    "damd-s25-a25": "12.94 21.62 23.91 34.82",
    "damd-s50-a50": "14.26 23.70 24.83 36.06",
    "damd-s100-a100": "13.47 25.06 26.28 38.39",
    "moss-s25-a25": "12.74 23.03 25.83 37.46",
    "moss-s50-a50": "13.78 23.33 25.36 36.87",
    "moss-s100-a100": "13.84 24.36 25.21 36.69",
    "vrbot-un-s25-a25": "10.86 20.74 24.49 35.69",
    "vrbot-un-s50-a50": "13.10 24.13 26.11 38.19",
    "vrbot-s25-a0": "15.79 25.41 24.09 35.29",
    "vrbot-s50-a0": "14.75 24.10 25.69 34.72",
    "vrbot-s10-a10": "15.10 24.85 27.21 39.72",
    "vrbot-s25-a25": "15.88 25.77 27.73 40.52",
    "vrbot-s50-a50": "14.72 26.63 27.82 40.69",
    "vrbot-s100-a100": "15.31 26.66 27.51 40.29",
    "vrbot-bert-s50-a50": "15.80 26.70 28.21 41.18",
    "vrbot-bert-s100-a100": "16.11 27.60 28.80 42.08",
}
_TABLE_5_KAMED = {
    "vrbot-no-state": "15.14 30.01 29.64",
    "vrbot-no-action": "18.31 31.67 31.67",
    "vrbot-no-graph": "20.78 42.02 41.84",
    "vrbot-no-context": "17.61 37.41 37.05",
    "vrbot-joint": "18.22 38.09 37.91",
    "vrbot": "21.54 42.37 42.33",
}
_TABLE_5_MEDDIALOG = {
    "vrbot-no-state": "12.03 21.48 22.05",
    "vrbot-no-action": "12.51 21.26 22.53",
    "vrbot-no-graph": "17.87 33.09 35.41",
    "vrbot-no-context": "11.40 27.22 28.45",
    "vrbot-joint": "15.30 28.93 30.82",
    "vrbot": "18.11 34.51 36.79",
}
_TABLE_6 = {"postks": "30.19 56.48", "vrbot": "44.22 82.61"}
_MEDDG_COLUMNS = ("character_bleu_1", "character_bleu_4", "substring_entity_f1", "character_rouge_1")
_MEDDG_PROTOCOL = {
    "dfmed": "41.74 22.48 21.54 28.90",
    "medref": "43.51 23.04 22.70 30.07",
    "gpt-4o": "42.19 23.32 13.15 13.99",
    "chatglm3-6b": "33.16 17.97 17.43 29.27",
}

PUBLISHED: Mapping[str, Published] = {
    "kamed": Published(PAPER, KAMED, "vrbot", _table(tuple(VRBOT_COLUMNS), _TABLE_2_KAMED), OWN_VECTORS),
    "meddialog": Published(PAPER, MEDDIALOG, "vrbot", _table(tuple(VRBOT_COLUMNS), _TABLE_2_MEDDIALOG), OWN_VECTORS),
    "meddg": Published(PAPER, MEDDG, "vrbot", _table(ENTITY_COLUMNS, _TABLE_3), OWN_VECTORS),
    "kamed-ablations": Published(PAPER, KAMED, "vrbot", _table(ABLATION_COLUMNS, _TABLE_5_KAMED), OWN_VECTORS),
    "meddialog-ablations": Published(
        PAPER, MEDDIALOG, "vrbot", _table(ABLATION_COLUMNS, _TABLE_5_MEDDIALOG), OWN_VECTORS
    ),
    "kamed-explainability": Published(PAPER, KAMED, "vrbot", _table(("mep", "mer"), _TABLE_6)),
    "meddg-protocol": Published("later work", MEDDG, "meddg", _table(_MEDDG_COLUMNS, _MEDDG_PROTOCOL), CUMULATIVE),
}
