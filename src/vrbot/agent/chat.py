"""A conversation under way: what was said, what the agent answered, and the way back."""

from __future__ import annotations

from vrbot.agent.reply import Reply
from vrbot.agent.respond import Agent
from vrbot.agent.searching import Search


class Chat:
    """One patient's conversation with an agent; the agent's replies count as what the physician said."""

    def __init__(self, agent: Agent, search: Search | None = None) -> None:
        self._agent, self._search = agent, search
        self._turns: list[tuple[str, Reply]] = []

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The replies so far."""
        return tuple(reply for _, reply in self._turns)

    def say(self, text: str) -> Reply:
        """What the patient says next, and the agent's reply to it."""
        said = [(patient, reply.text) for patient, reply in self._turns]
        reply = self._agent.respond([*said, (text, "")], self._search)
        self._turns.append((text, reply))
        return reply

    def undo(self) -> str | None:
        """Takes the last turn back and gives what the patient said in it; None where there is nothing to take back."""
        return self._turns.pop()[0] if self._turns else None

    def begin_again(self) -> None:
        """Forgets everything that was said."""
        self._turns.clear()
