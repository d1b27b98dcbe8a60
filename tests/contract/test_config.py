"""Settings: complete, checked once, and every one of them used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

import vrbot
from vrbot.config import RECIPES, Config, parse_assignments, recipe, setting_names
from vrbot.errors import ConfigError

SOURCES = Path(vrbot.__file__).parent


@pytest.mark.parametrize("name", ["policy.hop", "polisy.hops", "hops", "", "policy", "policy.hops.more"])
def test_an_unknown_setting_is_named_and_the_known_ones_are_listed(name: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"{name} is not a setting; known: network.embedding_size")):
        Config().with_settings({name: 1})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy.hops", 0),
        ("network.dropout", 1.0),
        ("network.memory", "elephant"),
        ("objective.temperature_end", 0),
        ("training.batch_size", "many"),
        ("decoding.beam", None),
        ("objective.bound", ["joint"]),
    ],
)
def test_a_wrong_value_is_refused_with_the_setting_and_the_value(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"{name} = {value!r}: ")):
        Config().with_settings({name: value})


def test_unknown_sections_and_fields_of_a_file_are_refused() -> None:
    with pytest.raises(ConfigError, match="polisy"):
        Config.parse({"polisy": {"hops": 1}})
    with pytest.raises(ConfigError, match=r"policy\.hop ="):
        Config.parse({"policy": {"hop": 1}})


def test_changing_settings_changes_those_and_no_others() -> None:
    changed = Config().with_settings({"policy.hops": 1, "objective.kl_floor": -5.0})
    assert (changed.policy.hops, changed.objective.kl_floor) == (1, -5.0)
    assert changed.with_settings({"policy.hops": Config().policy.hops, "objective.kl_floor": None}) == Config()


def test_a_configuration_survives_being_written_and_read() -> None:
    for name in RECIPES:
        assert Config.parse(recipe(name).model_dump()) == recipe(name)


def test_a_configuration_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValidationError):
        Config().policy.hops = 1  # type: ignore[misc]


def test_assignments_are_read_as_yaml() -> None:
    assert parse_assignments(["policy.hops=1", "objective.straight_through = false", "objective.kl_floor=null"]) == {
        "policy.hops": 1,
        "objective.straight_through": False,
        "objective.kl_floor": None,
    }
    assert parse_assignments(["network.memory=carried", "training.learning_rate=1.0e-4"]) == {
        "network.memory": "carried",
        "training.learning_rate": 1e-4,
    }
    with pytest.raises(ConfigError, match=r"'policy.hops' is not of the form key=value"):
        parse_assignments(["policy.hops"])


@pytest.mark.parametrize("value", ["{", "[1, 2", "'", "2001-13-45", "\0"])
def test_a_value_that_is_not_yaml_is_refused_with_its_assignment(value: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"{f'policy.hops={value}'!r}: the value is not YAML")):
        parse_assignments([f"policy.hops={value}"])


@pytest.mark.parametrize("value", ["1e-4", "2E-3", "5e0"])
def test_a_number_may_be_written_with_an_exponent_and_no_point(value: str) -> None:
    changes = parse_assignments([f"training.learning_rate={value}"])
    assert Config().with_settings(changes).training.learning_rate == float(value)


def test_recipes_are_known_by_name() -> None:
    assert recipe("small") == Config()
    assert (recipe("paper").network.hidden_size, recipe("paper").policy.posterior) == (512, "free")
    with pytest.raises(ConfigError, match="'big' is not a recipe; known: small, paper"):
        recipe("big")


def test_the_recipe_of_the_paper_has_the_papers_settings() -> None:
    paper = recipe("paper")
    assert (paper.network.embedding_size, paper.network.max_context, paper.network.max_response) == (300, 200, 100)
    assert (paper.tracker.length, paper.policy.length, paper.policy.hops, paper.policy.graph_size) == (10, 3, 2, 128)
    assert (paper.tracker.generation_bias, paper.tracker.ending_bias, paper.tracker.order_bias) == (0.0, 0.0, 0.0)
    schedule = paper.objective
    assert (schedule.temperature_start, schedule.temperature_end, schedule.temperature_steps) == (3.0, 0.1, 30_000)
    assert (paper.training.batch_size, paper.training.learning_rate, paper.training.final_learning_rate) == (
        16,
        1e-4,
        1e-5,
    )
    assert paper.decoding.beam == 5


@pytest.mark.parametrize("name", setting_names())
def test_every_setting_is_read_somewhere(name: str) -> None:
    field = name.partition(".")[2]
    used = re.compile(rf"\.{field}\b")
    readers = [
        path for path in SOURCES.rglob("*.py") if path.name != "config.py" and used.search(path.read_text("utf-8"))
    ]
    assert readers, f"{name} is a setting that nothing reads"
