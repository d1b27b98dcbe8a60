"""A desk with something in it for every page about records, served by a process of its own.

`python -m tests.console.records_world FOLDER` prints the port and a token for each user once it can be reached.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.serving.fakes import quick_accounts
from vrbot.safety.switch import KillSwitch
from vrbot.serving.accounts import User
from vrbot.serving.actors import OPERATOR
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.api.signin import COOKIE
from vrbot.serving.proposals import Proposal
from vrbot.serving.responder import KnownStates
from vrbot.serving.rules_desk import RulesDesk
from vrbot.serving.safety_desk import Conversation
from vrbot.serving.service import Desk
from vrbot.serving.store import Store

PASSWORD = "correct horse"
USERS = {
    "ann": "physician",
    "eve": "annotator",
    "bob": "annotator",
    "ray": "researcher",
    "sue": "admin",
    "x-onload": "physician",
}
PAYLOAD = (
    "<img src=x onerror=\"alert('ran')\"><script>alert('ran')</script>{{constructor.constructor(\"alert('ran')\")()}}"
)
CARD = f"""# vrbot {PAYLOAD}

Reads {PAYLOAD} and answers.

```python
{PAYLOAD}
```

## Sizes

| what | size |
| --- | --- |
| parameters | 1,234 |
| {PAYLOAD} | 5 |

## Intended use and limits

Drafts of replies in text consultations, with the patient state.
"""
TALKS = {
    "zh": (("我咳嗽三天了，还有点发烧。", "体温最高到多少？"), ("三十八度五，嗓子疼。", "考虑上呼吸道感染，多喝水。")),
    "en": (("My stomach has hurt since Monday.", "Is it worse after meals?"), (f"Yes {PAYLOAD}", "")),
}


class Labeller:
    """Answers the same always, and says which state and action it had in mind."""

    fingerprint = "labeller-1"
    card = CARD

    def respond(self, conversation: Conversation) -> Mapping[str, Any]:
        sure = 0.9 if any("一" <= letter <= "龥" for letter in conversation[0][0]) else 0.4
        name = PAYLOAD if PAYLOAD in conversation[-1][0] else "咳嗽"
        return {
            "text": "多喝水。",
            "state": [{"name": name, "type": "symptom", "status": "new"}],
            "category": "diagnosis",
            "categories": {"diagnosis": sure},
            "keywords": [{"name": "上呼吸道感染", "type": "disease", "probability": sure}],
        }

    def what_if(self, conversation: Conversation, change: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.respond(conversation)

    def propose_labels(self, turns: Conversation, states: KnownStates = ()) -> list[Mapping[str, Proposal]]:
        """Other labels than those behind the draft: these have read the answer."""

        def of(value: Any, sure: float) -> Proposal:
            return Proposal(value, sure, "auto-labeller", self.fingerprint)

        action = {"category": of("ask_symptoms", 0.71), "keywords": of(["体温"], 0.64)}
        return [{"state": of(["发烧", PAYLOAD], 0.83), **(action if answer else {})} for _, answer in turns]


@dataclass(frozen=True)
class World:
    """A running server."""

    address: str
    tokens: Mapping[str, str]

    def cookie(self, user: str, language: str) -> list[Any]:
        """What makes a browser that user's."""
        return [
            {"name": COOKIE, "value": self.tokens[user], "url": self.address},
            {"name": "vrbot_language", "value": language, "url": self.address},
        ]


@contextmanager
def running(folder: Path) -> Iterator[World]:
    """Serves the world of a folder (`study` and `experiments` in it are shown) until the block ends."""
    command = [sys.executable, "-m", "tests.console.records_world", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        content = json.loads(server.stdout.readline())
        yield World(f"http://127.0.0.1:{content['port']}", content["tokens"])
    finally:
        server.terminate()
        server.wait(30)
        if server.stdout is not None:
            server.stdout.close()


def filled_desk(folder: Path) -> tuple[Desk, KillSwitch, dict[str, User]]:
    """Two consultations of Ann's, each with drafts and an answer, and all the users."""
    switch = KillSwitch(folder / "switch.json")
    desk = Desk(Store.open(folder / "desk.sqlite", create=True), RulesDesk(switch), Labeller())
    desk.accounts = quick_accounts(desk.store, 3600)
    users = {name: desk.accounts.add(OPERATOR, name, PASSWORD, role) for name, role in USERS.items()}
    ann = users["ann"].actor
    for language, talk in TALKS.items():
        consultation = desk.consultations.open(ann, language, f"{PAYLOAD} Li")
        for number, (said, answer) in enumerate(talk):
            turn = desk.consultations.receive(ann, consultation.id, f"t{number}", said)
            desk.drafting.draft(ann, turn.id)
            if answer:
                draft = desk.drafting.write(ann, turn.id, answer)
                desk.signoff.approve(ann, draft.id, draft.text_sha256 or "")
    return desk, switch, users


def main(folder: Path) -> None:
    """Serves until it is told to stop."""
    import uvicorn

    from vrbot.serving.app import create_app

    desk, switch, users = filled_desk(folder)
    tokens = {name: desk.accounts.sign_in(name, PASSWORD).token for name in users}
    study, experiments = folder / "study", folder / "experiments"
    app = create_app(desk, AppSettings(study=study, experiments=experiments, switch=switch))
    listening = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"port": listening.getsockname()[1], "tokens": tokens}), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
