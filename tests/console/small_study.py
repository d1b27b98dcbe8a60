"""A blind study of systems whose names must never be seen, small enough to rate in a test."""

from __future__ import annotations

from pathlib import Path

from tests.evaluation.invented_study import SYSTEMS, conversations, invented_field
from vrbot.evaluation.human_folders import write_folder
from vrbot.evaluation.human_sample import SampleSettings, draw_study
from vrbot.evaluation.turns import Latents


def put_study(folder: Path, dialogues: int = 2, raters: int = 2, note: str = "") -> Path:
    """Draws it into a folder that is not there yet; `note` ends every reply."""
    field = invented_field(
        6,
        reply=lambda system, dialogue, turn: f"回复 {SYSTEMS.index(system) * 7 + dialogue * 10 + turn} {note}",
        latents=lambda system, dialogue: Latents((0, 1), 1, (1 + SYSTEMS.index(system),)),
    )
    write_folder(folder, draw_study(field, SampleSettings(dialogues=dialogues, raters=raters), conversations), field, 1)
    return folder
