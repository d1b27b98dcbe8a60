"""An explainable, semi-supervised medical dialogue system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vrbot.agent.respond import Agent as VRBot

__all__ = ["VRBot"]


def __getattr__(name: str) -> Any:
    """`VRBot`, the agent, loaded when somebody asks for it, so that importing the package costs nothing."""
    if name == "VRBot":
        from vrbot.agent.respond import Agent

        return Agent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
