"""Every setting of a model and its training: frozen, complete, and checked once. Recipes are functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveFloat, ValidationError, model_validator

from vrbot.errors import ConfigError

Folder = Annotated[str, AfterValidator(lambda name: os.path.abspath(os.path.expanduser(name)))]  # found from anywhere


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NetworkSettings(_Settings):
    """Sizes and forms of the parts, shared by VRBot and the baselines.

    With `begin_with_frequencies` whatever predicts words begins with how often responses say each (decision 0034),
    with equal ones otherwise.
    """

    embedding_size: int = Field(128, ge=1)
    hidden_size: int = Field(128, ge=1)
    dropout: float = Field(0.3, ge=0, lt=1)
    word_dropout: float = Field(0.2, ge=0, lt=1)
    ngram_dropout: float = Field(0.5, ge=0, lt=1)
    memory: Literal["carried", "session"] = "session"
    readings: Literal["fed", "late"] = "late"
    coverage: bool = True
    max_context: int = Field(120, ge=1)
    max_characters: int = Field(256, ge=1)
    max_response: int = Field(50, ge=2)
    embeddings_from: Folder | None = None
    begin_with_frequencies: bool = True


class TrackerSettings(_Settings):
    """The state span. Zero is the paper's form: of the biases, of the `caution` with which entities are generated in
    use, and of how many words around a mention (`surroundings`) decide whether it is offered at all."""

    length: int = Field(10, ge=1)
    generation_bias: float = -6.0
    ending_bias: float = -6.0
    order_bias: float = 1.0
    caution: float = Field(6.0, ge=0)
    surroundings: int = Field(4, ge=0)


class PolicySettings(_Settings):
    """The action and the graph; `form` says whether keywords are a span (the paper's) or a set.

    What serves the policy alone (its networks, the graph's, the bags of the history) learns at `learning_rate_factor`
    of the rate: a reply has many words to learn from where its keywords are a handful. With `at_least_one` VRBot names
    the likeliest entity of a set where one is to be expected and none is likely enough (decision 0019). It starts from
    what is usually named after so many n-grams (`habits`, decision 0024; 0: from nothing).
    """

    length: int = Field(5, ge=1)
    form: Literal["span", "set"] = "set"
    hops: int = Field(2, ge=1, le=8)
    subgraph_limit: int = Field(40, ge=1)
    graph_size: int = Field(64, ge=1)
    graph_score: Literal["linear", "bilinear", "spreading"] = "spreading"
    standing: bool = True
    habits: int = Field(24_000, ge=0)
    posterior: Literal["copies", "free"] = "copies"
    order: Literal["learned", "frequency"] = "frequency"
    at_least_one: bool = False
    learning_rate_factor: float = Field(0.2, gt=0)

    @model_validator(mode="after")
    def _only_sets_expect(self) -> Self:
        if self.at_least_one and self.form != "set":
            raise ValueError(f"policy.at_least_one needs policy.form=set, got {self.form}")
        return self


class ObjectiveSettings(_Settings):
    """How the bounds are weighted and sampled; `paper` is the true sum of the two bounds. With `marks_guesses` the
    generator is told which actions are guesses, and speaks as if its own were none (decision 0026). What a word costs
    is sent back through everything drawn, or through guessed actions only (`gradient_through`, decision 0032)."""

    temperature_start: float = Field(1.0, gt=0)
    temperature_end: float = Field(0.3, gt=0)
    temperature_steps: int = Field(2000, ge=1)
    straight_through: bool = True
    kl_warmup_steps: int = Field(0, ge=0)
    free_bits_state: float = Field(0.0, ge=0)
    free_bits_action: float = Field(0.0, ge=0)
    stop_gradient_on_q: bool = False
    gradient_through: Literal["draws", "guesses"] = "guesses"
    state_bound_weight: float = Field(1.0, ge=0)
    action_bound_weight: float = Field(1.0, ge=0)
    supervised_weight: float = Field(1.0, ge=0)
    state_label_weight: float = Field(5.0, ge=0)
    policy_weight: float = Field(4.0, ge=0)
    kl_floor: float | None = None
    bound: Literal["two-stage", "joint"] = "two-stage"
    split_reconstruction: bool = False
    marks_guesses: bool = True
    labelled_turns_only: bool = False
    pseudo_label_steps: int = Field(0, ge=0)
    categories_by_form: bool = True
    labels_teach_reading: bool = True


class TrainingSettings(_Settings):
    """The optimiser, the budget and when to stop.

    A batch has `batch_size` dialogues, or fewer, with no more turns than `max_rows` (unless one dialogue alone has), so
    that long dialogues are learnt from in as many updates as short ones (decision 0022).
    A system among the `rate_factors` learns at so much of the rate (decision 0014 has what was tried on validation).
    """

    batch_size: int = Field(16, ge=1)
    max_rows: int = Field(96, ge=1)
    shards: int = Field(1, ge=1)
    learning_rate: float = Field(1e-2, gt=0)
    final_learning_rate: float = Field(1e-4, gt=0)
    rate_factors: dict[str, PositiveFloat] = {"transformer": 0.4}
    weight_decay: float = Field(0.0, ge=0)
    gradient_clip: float = Field(5.0, gt=0)
    average_decay: float = Field(0.995, ge=0, lt=1)
    max_epochs: int = Field(3, ge=1)
    stage_one_epochs: float = Field(0.0, ge=0)
    validate_every_epochs: float = Field(1.0, gt=0)
    patience: int = Field(3, ge=1)
    checkpoint_every_steps: int = Field(200, ge=1)


class DecodingSettings(_Settings):
    """How replies are searched for; the last three count for systems with VRBot's generator.

    Every word is worth `word_reward` nats, so that short replies have no advantage; without one each system gets its
    own when it has been trained, chosen on validation data by one rule. No `no_repeat` words in a row come twice (0:
    they may). `keyword_bonus` (nats) prefers keywords not yet named; with `only_keywords` no other entity is. With
    `precision` int8 the words' scores are rounded first and the best of them computed again.
    """

    beam: int = Field(5, ge=1)
    word_reward: float | None = Field(None, ge=0)
    length_penalty: float = Field(0.0, ge=0)
    no_repeat: int = Field(2, ge=0)
    max_length: int = Field(50, ge=1)
    keyword_bonus: float = Field(3.0, ge=0)
    only_keywords: bool = True
    precision: Literal["float32", "int8"] = "float32"


class FactSettings(_Settings):
    """One-hop facts of `ccm` and `nkd`: how many are looked at, what their terms of the loss weigh, and at how much of
    the rate their decoder learns the layers whose result goes through a tanh (decision 0033)."""

    entities: int = Field(8, ge=1)
    triples: int = Field(20, ge=1)
    spreading: int = Field(5, ge=1)
    neighbours: int = Field(8, ge=1)
    gate_weight: float = Field(1.0, ge=0)
    relevance_weight: float = Field(1.0, ge=0)
    squashed_rate_factor: float = Field(0.2, gt=0)


class FlowSettings(_Settings):
    """`dual-flow`: what its terms of the loss weigh, and whether the generator is told which actions are guesses
    (`marks_guesses`, decision 0026); with `habits` it is given the habits that VRBot starts from (decision 0024), which
    are none of its own idea."""

    entity_weight: float = Field(4.0, ge=0)
    act_weight: float = Field(4.0, ge=0)
    habits: bool = False
    marks_guesses: bool = True


class ChainSettings(_Settings):
    """`moss` and `damd`: what labels of states and of actions weigh beside the reply, and at how much of the rate the
    decoder of the action learns (decision 0027)."""

    state_weight: float = Field(5.0, ge=0)
    action_weight: float = Field(4.0, ge=0)
    action_rate_factor: float = Field(0.2, gt=0)


class SedstSettings(_Settings):
    """The baseline `sedst`; for data without any state labels the posterior should reconstruct the context."""

    kl_weight: float = Field(0.1, ge=0)
    reconstruct_context: bool = False


class LabesSettings(_Settings):
    """The baseline `labes`: `top_k` symbols to draw among, 0 for all."""

    kl_weight: float = Field(0.5, ge=0)
    top_k: int = Field(0, ge=0)
    straight_through: bool = True


class HredSettings(_Settings):
    """What HRED and VHRED may do beside the dialogue's vector, over the last two utterances."""

    attention: bool = False
    copying: bool = False


class VhredSettings(_Settings):
    """The latent variable of VHRED; the published 25,000 steps of warm-up are many epochs of a small corpus, and a
    warm-up that outlasts training leaves a posterior that nobody can foretell (decision 0027)."""

    latent_size: int = Field(16, ge=1)
    kl_warmup_steps: int = Field(100, ge=0)
    word_drop: float = Field(0.25, ge=0, lt=1)
    bag_of_words_weight: float = Field(0.0, ge=0)


class PostksSettings(_Settings):
    """Pieces of knowledge; for `warmup_steps` only the bag of words is learnt (and labels)."""

    pieces: int = Field(50, ge=1)
    temperature: float = Field(0.67, gt=0)
    warmup_steps: int = Field(0, ge=0)
    detach_posterior: bool = True


class TransformerSettings(_Settings):
    """A history length of 0 reads the last two utterances, any other so many of the dialogue's latest words."""

    layers: int = Field(2, ge=1)
    heads: int = Field(4, ge=1)
    feedforward_factor: int = Field(2, ge=1)
    history_length: int = Field(0, ge=0)


class PretrainedSettings(_Settings):
    """The encoder of `vrbot-bert` and `hred-bert`; what layers that do not learn make of a text is kept in memory.

    Words get features of the last `layers` (0: none), frozen or not. Beside them the last `history` sub-tokens of the
    dialogue (0: none) are read with the `learning_layers` learning.
    """

    directory: Folder | None = None
    freeze: bool = True
    layers: int = Field(3, ge=0)
    history: int = Field(112, ge=0)
    learning_layers: int = Field(2, ge=1)
    learning_rate_factor: float = Field(0.05, gt=0)
    cache_megabytes: int = Field(3000, ge=0)


class Config(_Settings):
    """One run, completely; `config.yaml` beside the weights is this."""

    network: NetworkSettings = NetworkSettings()
    tracker: TrackerSettings = TrackerSettings()
    policy: PolicySettings = PolicySettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    training: TrainingSettings = TrainingSettings()
    decoding: DecodingSettings = DecodingSettings()
    hred: HredSettings = HredSettings()
    vhred: VhredSettings = VhredSettings()
    postks: PostksSettings = PostksSettings()
    transformer: TransformerSettings = TransformerSettings()
    sedst: SedstSettings = SedstSettings()
    labes: LabesSettings = LabesSettings()
    facts: FactSettings = FactSettings()
    flows: FlowSettings = FlowSettings()
    chains: ChainSettings = ChainSettings()
    pretrained: PretrainedSettings = PretrainedSettings()

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
            raise ConfigError(f"{'.'.join(map(str, first['loc']))} = {first['input']!r}: {first['msg']}") from None


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
        try:
            changes[name.strip()] = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that is in no calendar
            problem = getattr(error, "problem", None) or "it cannot be read"
            raise ConfigError(f"{assignment!r}: the value is not YAML ({problem}): for example policy.hops=1") from None
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
            word_dropout=0.0,
            ngram_dropout=0.0,
            memory="carried",
            readings="fed",
            coverage=False,
            max_context=200,
            max_response=100,
            begin_with_frequencies=False,
        ),
        tracker=TrackerSettings(generation_bias=0.0, ending_bias=0.0, order_bias=0.0, caution=0.0, surroundings=0),
        policy=PolicySettings(
            length=3,
            subgraph_limit=50,
            graph_size=128,
            graph_score="linear",
            standing=False,
            habits=0,
            form="span",
            posterior="free",
            order="learned",
            learning_rate_factor=1.0,
        ),
        objective=ObjectiveSettings(
            temperature_start=3.0,
            temperature_end=0.1,
            temperature_steps=30_000,
            straight_through=False,
            gradient_through="draws",
            marks_guesses=False,
            categories_by_form=False,
            labels_teach_reading=False,
            policy_weight=1.0,
            state_label_weight=1.0,
        ),
        training=TrainingSettings(
            batch_size=16,
            max_rows=400,
            learning_rate=1e-4,
            rate_factors={},
            final_learning_rate=1e-5,
            max_epochs=50,
            stage_one_epochs=20,
            patience=10,
            average_decay=0.0,
        ),
        decoding=DecodingSettings(
            word_reward=0.0, length_penalty=1.0, no_repeat=0, keyword_bonus=0.0, only_keywords=False
        ),
        facts=FactSettings(squashed_rate_factor=1.0),
        vhred=VhredSettings(latent_size=100, kl_warmup_steps=25_000),
        chains=ChainSettings(state_weight=1.0, action_weight=1.0, action_rate_factor=1.0),
        postks=PostksSettings(warmup_steps=5_000),
    )


RECIPES: Mapping[str, Callable[[], Config]] = {"small": small, "paper": paper}


def recipe(name: str) -> Config:
    """The configuration of a named recipe."""
    if name not in RECIPES:
        raise ConfigError(f"{name!r} is not a recipe; known: {', '.join(RECIPES)}")
    return RECIPES[name]()
