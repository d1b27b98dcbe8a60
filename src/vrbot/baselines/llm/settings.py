"""Where the endpoint is and how it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from vrbot.errors import ConfigError

LANGUAGES = ("auto", "zh", "en")
KEY_VARIABLE = "VRBOT_LLM_API_KEY"


@dataclass(frozen=True)
class EndpointSettings:
    """An OpenAI-compatible endpoint; the key is read from the environment variable `key_variable` and kept nowhere."""

    base_url: str
    model: str = ""
    key_variable: str = KEY_VARIABLE
    temperature: float = 0.0
    max_tokens: int = 256
    timeout: float = 60.0  # seconds for one request, from the connection to the last byte
    retries: int = 4
    longest_pause: float = 60.0  # seconds before a request is sent again, whatever the server asks for
    concurrency: int = 4
    language: str = "auto"  # of the instructions; auto: the patient's

    def __post_init__(self) -> None:
        for name, known in (("model", self.model), ("key_variable", self.key_variable)):
            if not isinstance(known, str) or not known:
                raise ConfigError(f"llm {name} must be a name, got {known!r}: say which with --llm-set {name}=NAME")
        if self.language not in LANGUAGES:
            raise ConfigError(f"llm language must be one of {', '.join(LANGUAGES)}, got {self.language!r}")
        self._check_address()
        self._check_numbers()

    @classmethod
    def of(cls, base_url: str, changes: Mapping[str, Any]) -> EndpointSettings:
        """With settings by name; an unknown name is refused."""
        known = [field.name for field in fields(cls) if field.name != "base_url"]
        unknown = [name for name in changes if name not in known]
        if unknown:
            raise ConfigError(f"llm has no setting {unknown[0]!r}; known: {', '.join(known)}")
        return cls(base_url, **changes)

    def as_dict(self) -> dict[str, Any]:
        """What is written beside results; the key is not among it."""
        return asdict(self)

    def _check_address(self) -> None:
        try:
            parts = urlsplit(self.base_url)
            sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            sound = False
        if not sound:
            raise ConfigError(
                f"{self.base_url!r} is no address of an endpoint: give one such as http://127.0.0.1:8000/v1"
            )
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ConfigError(
                "the llm address must hold no key, name or query, for it is written beside results: "
                f"put the key into the environment variable {self.key_variable}"
            )

    def _check_numbers(self) -> None:
        least = {
            "temperature": 0,
            "max_tokens": 1,
            "timeout": 0.001,
            "retries": 0,
            "longest_pause": 0,
            "concurrency": 1,
        }
        whole = ("max_tokens", "retries", "concurrency")
        for name, lowest in least.items():
            value = getattr(self, name)
            kinds = int if name in whole else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds) or not lowest <= value < float("inf"):
                raise ConfigError(f"llm {name} must be a number of at least {lowest}, got {value!r}")
