"""What pages show that is not in the store: a study, experiments, and the kill switch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vrbot.safety.switch import KillSwitch
from vrbot.serving.api.settings import AppSettings


@dataclass(frozen=True)
class Material:
    """Where it is; None where nobody has said so, and the page then says how to."""

    study: Path | None = None
    experiments: Path | None = None
    switch: KillSwitch | None = None


def material_of(settings: AppSettings) -> Material:
    """As the app's settings have it."""
    return Material(settings.study, settings.experiments, settings.switch)
