"""A model in conversation: replies from the prior networks only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vrbot.agent.respond import Agent

__all__ = ["Agent"]


def __getattr__(name: str) -> Any:
    """`Agent`, loaded when somebody asks for it."""
    if name == "Agent":
        from vrbot.agent.respond import Agent

        return Agent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
