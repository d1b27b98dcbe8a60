"""Tiny agents over a graph whose edges run both ways, for all tests of explanations."""

from __future__ import annotations

from functools import cache

import pytest

from tests.agent.conftest import MakeAgent, run
from tests.agent.conftest import make_agent as fresh_agent
from tests.model.tiny import tiny_linked_corpus
from vrbot.dialogue.corpus import Corpus

__all__ = ["fresh_agent", "run", "tiny_linked_corpus"]

CONVERSATION = [("我咳嗽三天了", "有没有发烧，头痛？"), ("发烧，没有头痛", "考虑流感，查胸片。"), ("怎么办，咳嗽", "")]


@pytest.fixture(scope="session", name="corpus")
def corpus_of_explanations(linked_corpus: Corpus) -> Corpus:
    """The tiny corpus, every triple of its graph told from both ends."""
    return linked_corpus


@pytest.fixture(scope="session", name="make_agent")
def agents_made_once(fresh_agent: MakeAgent) -> MakeAgent:
    """`make_agent` that gives the same agent for the same settings; whoever changes one must change it back."""
    return cache(fresh_agent)
