"""Asking the app's drafter for drafts: once for each wish, however many screens have it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from nicegui import background_tasks

from vrbot.errors import VRBotError
from vrbot.serving.actors import Actor
from vrbot.serving.console.shell import Console
from vrbot.serving.records import Draft

_under_way: dict[str, asyncio.Task[Draft]] = {}


async def wanted_draft(console: Console, actor: Actor, turn: str, change: Mapping[str, Any] | None = None) -> Draft:
    """The drafter's draft; whoever asks for the same meanwhile gets the same. Leaving the page does not stop it."""
    key = json.dumps([id(console), actor.id, turn, change], sort_keys=True)
    task = _under_way.get(key)
    if task is None:
        task = background_tasks.create(console.drafter.draft(actor, turn, change), name=f"draft {turn}")
        _under_way[key] = task
        task.add_done_callback(lambda _: _under_way.pop(key, None))
    return await asyncio.shield(task)


def begin_draft(console: Console, actor: Actor, turn: str) -> None:
    """Has a draft made without waiting for it; where it fails, whoever looks at the turn asks again."""

    async def make() -> None:
        try:
            await wanted_draft(console, actor, turn)
        except VRBotError:
            return

    background_tasks.create(make(), name=f"begin draft {turn}")
