"""A responder that answers at once and says exactly where its words came from, in either language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vrbot.dialogue.session import CATEGORIES
from vrbot.serving.safety_desk import Conversation

TERMS = {
    "zh": ("咳嗽", "发烧", "头痛", "流感", "布洛芬", "胸片"),
    "en": ("cough", "fever", "headache", "influenza", "ibuprofen", "chest x-ray"),
}
SYMPTOMS = 3
WORDING = {
    "zh": {"known": "您有{state}。", "diagnosis": "考虑{keyword}。", "ask_symptoms": "有没有{keyword}？"},
    "en": {
        "known": "You have {state}. ",
        "diagnosis": "It may be {keyword}.",
        "ask_symptoms": "Do you have {keyword}?",
    },
}


class Scripted:
    """Names the symptoms it heard, then one keyword; `say:` makes it say what follows, `term:` name it."""

    fingerprint = "scripted-1"
    entity_names = TERMS["zh"] + TERMS["en"]

    def respond(self, conversation: Conversation) -> Mapping[str, Any]:
        """The reply with evidence."""
        return self.what_if(conversation, {})

    def what_if(self, conversation: Conversation, change: Mapping[str, Any]) -> Mapping[str, Any]:
        """The reply under a change."""
        said = conversation[-1][0]
        if "crash" in said:
            raise RuntimeError("the model has crashed")
        language = "zh" if any("\u4e00" <= character <= "\u9fff" for character in said) else "en"
        terms = TERMS[language]
        heard = [term for term in terms[:SYMPTOMS] if term in said.lower()]
        named = said.partition("term:")[2]
        heard += [named] if named else []
        state = list(change["state"]) if change.get("state") is not None else heard
        category = str(change.get("category") or "diagnosis")
        keywords = list(change["keywords"]) if change.get("keywords") is not None else [named or terms[SYMPTOMS]]
        words = WORDING[language]
        joined = ("、" if language == "zh" else ", ").join(state)
        text = words["known"].format(state=joined) if state else ""
        text += words["ask_symptoms" if category == "ask_symptoms" else "diagnosis"].format(keyword=" ".join(keywords))
        if "say:" in said:
            text = said.partition("say:")[2]
        return _reply(text, said, len(conversation) - 1, state, category, keywords, tuple(change))


def _reply(
    text: str,
    said: str,
    turn: int,
    state: Sequence[str],
    category: str,
    keywords: Sequence[str],
    changed: tuple[str, ...],
) -> dict[str, Any]:
    def place(term: str) -> dict[str, Any]:
        start = said.lower().find(term)
        return {"speaker": "patient", "turn": turn, "word": 0, "start": start, "end": start + len(term)}

    def mentions(term: str) -> list[dict[str, Any]]:
        return [{"text": term, "share": 0.9, "place": place(term)}] if term in said.lower() else []

    copied = [
        {
            "text": term,
            "probability": 0.9,
            "generated": 0.1,
            "source": "context",
            "copies": [{"source": "context", "text": term, "share": 0.9, "place": place(term)}],
        }
        for term in state
        if term in said.lower()
    ]
    named = [
        {"text": word, "probability": 0.8, "generated": 0.2, "source": "action", "copies": []} for word in keywords
    ]
    path = {"relations": ["symptom_of"], "attention": [[0.5]], "weight": 0.5, "effect": 0.2}
    told = {
        "from_conversation": 0.2,
        "from_graph": 0.8,
        "base": None,
        "conversation_score": 0.1,
        "graph_score": 0.9,
        "copy_weight": 0.6,
        "explained_by": ["path"],
        "num_paths": 1,
    }
    return {
        "text": text,
        "state": [{"name": term, "type": "symptom", "status": "new"} for term in state],
        "dropped": [],
        "category": category,
        "categories": {name: 0.7 if name == category else 0.1 for name in CATEGORIES},
        "keywords": [
            {"name": word, "type": "disease", "probability": 0.8, "source": "graph", **_shares(told)}
            for word in keywords
        ],
        "evidence": {
            "words": copied + named,
            "state": [
                {
                    "name": term,
                    "type": "symptom",
                    "status": "new",
                    "probability": 0.9,
                    "generated": 0.1,
                    "remembered": 0.0,
                    "mentions": mentions(term),
                }
                for term in state
            ],
            "keywords": [
                {
                    "name": word,
                    "type": "disease",
                    "probability": 0.8,
                    **told,
                    "paths": [{**path, "entities": [state[0], word]}] if state else [],
                }
                for word in keywords
            ],
            "changed": list(changed),
            "confidence": 0.83,
            "abstain": ["flat action"] if "unsure" in said else [],
        },
    }


def _shares(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: told[name] for name in ("from_conversation", "from_graph")}
