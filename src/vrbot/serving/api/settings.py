"""How the desk is served: limits, deadlines, what its pages show, and who may do without signing in."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

from vrbot.errors import ConfigError
from vrbot.safety.switch import KillSwitch
from vrbot.serving.actors import Actor

DEMO_PHYSICIAN = Actor("demo-physician", "physician")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
AT_LEAST_ONE = (
    "queue_length",
    "batch_size",
    "max_body_bytes",
    "requests_per_minute",
    "sign_ins_per_minute",
    "patient_turns_per_minute",
    "threads",
)
POSITIVE = ("draft_seconds", "drain_seconds", "body_seconds")


@dataclass(frozen=True)
class AppSettings:
    """What `create_app` is told.

    `open_demo` lets everybody who reaches the server act as the demo physician: only for a demonstration that listens
    on loopback. `secret` signs patients' links; several processes that serve one database need the same. `setup_code`
    is what the first administrator is made with, while there is no account. `switch` is the kill switch for drafts.
    The queue and the limits are those of one process.
    """

    open_demo: bool = False
    console: bool = True
    https: bool = False
    secret: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    setup_code: str | None = field(default=None, repr=False)
    model_name: str = "vrbot"
    switch: KillSwitch | None = None
    study: Path | None = None
    experiments: Path | None = None
    queue_length: int = 64
    batch_size: int = 8
    draft_seconds: float = 30.0
    body_seconds: float = 30.0
    drain_seconds: float = 30.0
    drain_pause: float = 0.3
    max_body_bytes: int = 5 * 2**20
    requests_per_minute: int = 6000
    sign_ins_per_minute: int = 10
    patient_turns_per_minute: int = 30
    threads: int = 12

    def __post_init__(self) -> None:
        for name in AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in POSITIVE:
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} must be positive, got {getattr(self, name)}")
        if len(self.secret) < 32:
            raise ConfigError(f"the secret must have at least 32 characters, got {len(self.secret)}")
