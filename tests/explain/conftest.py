"""Tiny agents over a graph whose edges run both ways, for all tests of explanations."""

from __future__ import annotations

from functools import cache

import pytest

from tests.agent.conftest import MakeAgent, run
from tests.agent.conftest import make_agent as fresh_agent
from tests.model.tiny import TRIPLES, build_corpus
from vrbot.dialogue.corpus import Corpus

__all__ = ["fresh_agent", "run"]

BACK = {"contains_symptom": "symptom_of", "to_treat": "treated_by", "check_item": "checked_for"}
CONVERSATION = [("我咳嗽三天了", "有没有发烧，头痛？"), ("发烧，没有头痛", "考虑流感，查胸片。"), ("怎么办，咳嗽", "")]


@pytest.fixture(scope="session", name="corpus")
def linked_corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The tiny corpus, every triple of its graph told from both ends."""
    back = tuple((tail, BACK[relation], head) for head, relation, tail in TRIPLES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.model.tiny.TRIPLES", (*TRIPLES, *back))
        return build_corpus(tmp_path_factory.mktemp("linked"))


@pytest.fixture(scope="session", name="make_agent")
def agents_made_once(fresh_agent: MakeAgent) -> MakeAgent:
    """`make_agent` that gives the same agent for the same settings; whoever changes one must change it back."""
    return cache(fresh_agent)
