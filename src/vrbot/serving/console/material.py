"""What pages show that is not in the store: a study, experiments, the model's card, and the kill switch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrbot.safety.switch import KillSwitch


@dataclass(frozen=True)
class Material:
    """Where it is (the card: its Markdown); None where nobody has said so, and the page then says how to."""

    study: Path | None = None
    experiments: Path | None = None
    card: str | None = None
    switch: KillSwitch | None = None


def material_of(settings: Any) -> Material:
    """As the app's settings have it (`study`, `experiments`, `card`, `switch`)."""
    places = {name: getattr(settings, name, None) for name in ("study", "experiments")}
    paths = {name: Path(place) for name, place in places.items() if place is not None}
    return Material(**paths, card=getattr(settings, "card", None), switch=getattr(settings, "switch", None))
