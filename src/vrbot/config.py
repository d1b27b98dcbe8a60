"""Every setting of a model and its training: frozen, complete, and checked once. Recipes are functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vrbot.errors import ConfigError


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NetworkSettings(_Settings):
    """Sizes and forms of the parts, shared by VRBot and the baselines."""

    embedding_size: int = Field(128, ge=1)
    hidden_size: int = Field(128, ge=1)
    dropout: float = Field(0.3, ge=0, lt=1)
    memory: Literal["carried", "session"] = "session"
    readings: Literal["fed", "late"] = "late"
    max_context: int = Field(120, ge=1)
    max_characters: int = Field(256, ge=1)
    max_response: int = Field(50, ge=2)


class TrackerSettings(_Settings):
    """The state span; the three biases at 0 are the paper's form."""

    length: int = Field(10, ge=1)
    generation_bias: float = -6.0
    ending_bias: float = -6.0
    order_bias: float = 1.0


class PolicySettings(_Settings):
    """The action and the graph; `form` says whether keywords are a span (the paper's) or a set."""

    length: int = Field(5, ge=1)
    form: Literal["span", "set"] = "set"
    hops: int = Field(2, ge=1, le=8)
    subgraph_limit: int = Field(40, ge=1)
    graph_size: int = Field(64, ge=1)
    graph_score: Literal["linear", "bilinear"] = "bilinear"
    posterior: Literal["copies", "free"] = "copies"
    order: Literal["learned", "frequency"] = "frequency"


class ObjectiveSettings(_Settings):
    """How the bounds are weighted and sampled; `paper` is the true sum of the two bounds."""

    temperature_start: float = Field(1.0, gt=0)
    temperature_end: float = Field(0.3, gt=0)
    temperature_steps: int = Field(2000, ge=1)
    straight_through: bool = True
    kl_warmup_steps: int = Field(0, ge=0)
    free_bits_state: float = Field(0.0, ge=0)
    free_bits_action: float = Field(0.0, ge=0)
    stop_gradient_on_q: bool = False
    state_bound_weight: float = Field(0.3, ge=0)
    action_bound_weight: float = Field(1.0, ge=0)
    supervised_weight: float = Field(1.0, ge=0)
    kl_floor: float | None = None
    bound: Literal["two-stage", "joint"] = "two-stage"
    split_reconstruction: bool = True
    labelled_turns_only: bool = False
    pseudo_label_steps: int = Field(0, ge=0)


class TrainingSettings(_Settings):
    """The optimiser, the budget and when to stop."""

    batch_size: int = Field(16, ge=1)
    max_rows: int = Field(400, ge=1)
    shards: int = Field(1, ge=1)
    learning_rate: float = Field(2e-3, gt=0)
    final_learning_rate: float = Field(1e-4, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    gradient_clip: float = Field(5.0, gt=0)
    average_decay: float = Field(0.995, ge=0, lt=1)
    max_epochs: int = Field(6, ge=1)
    stage_one_epochs: float = Field(0.0, ge=0)
    validate_every_epochs: float = Field(1.0, gt=0)
    patience: int = Field(3, ge=1)
    checkpoint_every_steps: int = Field(200, ge=1)


class DecodingSettings(_Settings):
    """How replies are searched for."""

    beam: int = Field(5, ge=1)
    length_penalty: float = Field(1.0, ge=0)
    max_length: int = Field(50, ge=1)


class Config(_Settings):
    """One run, completely; `config.yaml` beside the weights is this."""

    network: NetworkSettings = NetworkSettings()
    tracker: TrackerSettings = TrackerSettings()
    policy: PolicySettings = PolicySettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    training: TrainingSettings = TrainingSettings()
    decoding: DecodingSettings = DecodingSettings()

    def with_settings(self, changes: Mapping[str, Any]) -> Self:
        """The same with dotted settings changed, such as {"policy.hops": 1}."""
        content = self.model_dump()
        for name, value in changes.items():
            section, _, field = name.partition(".")
            if section not in content or field not in content[section]:
                raise ConfigError(f"{name} is not a setting; known: {', '.join(setting_names())}")
            content[section][field] = value
        return self.parse(content)

    @classmethod
    def parse(cls, content: Mapping[str, Any]) -> Self:
        """A configuration from plain values, or a ConfigError that names the setting and the value."""
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ConfigError(f"{place} = {first['input']!r}: {first['msg']}") from None


def setting_names() -> list[str]:
    """Every dotted setting."""
    return [f"{section}.{field}" for section, values in Config().model_dump().items() for field in values]


def parse_assignments(assignments: list[str]) -> dict[str, Any]:
    """`["policy.hops=1"]` -> {"policy.hops": 1}; values are read as YAML."""
    changes: dict[str, Any] = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator:
            raise ConfigError(f"{assignment!r} is not of the form key=value, for example policy.hops=1")
        changes[name.strip()] = yaml.safe_load(value)
    return changes


def small() -> Config:
    """For one CPU: what learns best on some ten thousand turns in some minutes. The default."""
    return Config()


def paper() -> Config:
    """The paper's sizes and its literal form (section 4.6)."""
    return Config(
        network=NetworkSettings(
            embedding_size=300,
            hidden_size=512,
            dropout=0.0,
            memory="carried",
            readings="fed",
            max_context=200,
            max_response=100,
        ),
        tracker=TrackerSettings(generation_bias=0.0, ending_bias=0.0, order_bias=0.0),
        policy=PolicySettings(
            length=3,
            subgraph_limit=50,
            graph_size=128,
            graph_score="linear",
            form="span",
            posterior="free",
            order="learned",
        ),
        objective=ObjectiveSettings(
            temperature_start=3.0,
            temperature_end=0.1,
            temperature_steps=30_000,
            straight_through=False,
            state_bound_weight=1.0,
            split_reconstruction=False,
        ),
        training=TrainingSettings(
            batch_size=16,
            learning_rate=1e-4,
            final_learning_rate=1e-5,
            max_epochs=50,
            stage_one_epochs=20,
            patience=10,
            average_decay=0.0,
        ),
    )


RECIPES: Mapping[str, Callable[[], Config]] = {"small": small, "paper": paper}


def recipe(name: str) -> Config:
    """The configuration of a named recipe."""
    if name not in RECIPES:
        raise ConfigError(f"{name!r} is not a recipe; known: {', '.join(RECIPES)}")
    return RECIPES[name]()
