"""What pages show that is not in the store: a study, experiments, the model's card, and the kill switch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vrbot.safety.switch import KillSwitch
from vrbot.serving.api.settings import AppSettings


@dataclass(frozen=True)
class Material:
    """Where it is; None where nobody has said so, and the page then says how to.

    The card is a file of Markdown, or the folder of a saved model.
    """

    study: Path | None = None
    experiments: Path | None = None
    card: Path | None = None
    switch: KillSwitch | None = None


def material_of(settings: AppSettings) -> Material:
    """As the app's settings have it."""
    return Material(settings.study, settings.experiments, settings.card, settings.switch)
