"""What a language model is told: our instructions, the dialogue so far and, where asked for, VRBot's reasoning."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from vrbot.dialogue.session import CATEGORIES

Speaker = Literal["patient", "physician"]
Message = dict[str, str]


@dataclass(frozen=True)
class Hint:
    """VRBot's view of the turn, in names; a part its model does not have is None. `paths` are written out."""

    state: tuple[str, ...] | None = None
    category: str | None = None
    keywords: tuple[str, ...] | None = None
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """All that is known before a reply: what was said, in order; no reply to it, no label, nothing later."""

    said: tuple[tuple[Speaker, str], ...]
    hint: Hint | None = None


INSTRUCTIONS: Mapping[str, str] = {
    "zh": (
        "你是一名在线问诊的医生，正在用中文和患者文字交流。请只写出医生接下来要说的这一句回复：口语、简短，一般不超过两句，"
        "一次最多问两三个问题或给出一项建议。病情还不清楚时先追问关键症状；清楚时说明可能的诊断，或建议检查、用药。"
        "不要重复患者的话，不要列条目，不要写任何说明、角色名称或免责声明。"
    ),
    "en": (
        "You are a physician in an online consultation and you answer in English. Write only what the physician says "
        "next: one short, plain reply of at most two sentences that asks at most two or three questions or gives one "
        "piece of advice. While the picture is unclear, ask for the symptoms that matter; once it is clear, name the "
        "likely diagnosis, or suggest a test or a treatment. Do not repeat the patient, make no lists, and add no "
        "explanations, speaker names or disclaimers."
    ),
}
OPENING: Mapping[str, str] = {"zh": "（患者尚未说话）", "en": "(The patient has not spoken yet.)"}
HINTS: Mapping[str, Mapping[str, str]] = {
    "zh": {
        "intro": "另一个系统对当前情况的判断如下，供参考，可能有误：",
        "state": "患者状态",
        "category": "建议的行动",
        "keywords": "建议提到",
        "paths": "依据",
        "none": "无",
        "between": "、",
        "colon": "：",
        **dict(zip(CATEGORIES, ("询问症状", "给出诊断", "开药或建议治疗", "闲聊或结束语"), strict=True)),
    },
    "en": {
        "intro": "Another system sees the situation as follows; use it as advice, it may be wrong:",
        "state": "Patient state",
        "category": "Suggested action",
        "keywords": "Suggested to mention",
        "paths": "Grounds",
        "none": "none",
        "between": ", ",
        "colon": ": ",
        **dict(
            zip(
                CATEGORIES, ("ask about symptoms", "give a diagnosis", "prescribe or advise", "small talk"), strict=True
            )
        ),
    },
}
_HAN = re.compile(r"[\u3400-\u9fff]")
_THOUGHTS = re.compile(r"^.*</think>", re.DOTALL)


def language_of(question: Question) -> str:
    """zh where the dialogue so far has a Chinese character."""
    return "zh" if any(_HAN.search(text) for _, text in question.said) else "en"


def messages_of(question: Question, language: str) -> list[Message]:
    """The chat: instructions, then patient and physician as user and assistant; a hint stands with the instructions."""
    system = INSTRUCTIONS[language]
    if question.hint is not None:
        system = f"{system}\n\n{_hint_text(question.hint, HINTS[language])}"
    messages = [{"role": "system", "content": system}]
    for speaker, text in question.said:
        if not text.strip():
            continue
        role = "user" if speaker == "patient" else "assistant"
        if messages[-1]["role"] == role:
            messages[-1] = {"role": role, "content": f"{messages[-1]['content']}\n{text.strip()}"}
        else:
            messages.append({"role": role, "content": text.strip()})
    if messages[-1]["role"] != "user":
        messages.append({"role": "user", "content": OPENING[language]})
    return messages


def reply_text(written: str) -> str:
    """The reply in one line; thoughts that a reasoning model writes before it are left out."""
    return " ".join(_THOUGHTS.sub("", written).split())


def _hint_text(hint: Hint, words: Mapping[str, str]) -> str:
    def listed(names: tuple[str, ...]) -> str:
        return words["between"].join(names) or words["none"]

    lines = [words["intro"]]
    if hint.state is not None:
        lines.append(f"{words['state']}{words['colon']}{listed(hint.state)}")
    if hint.category is not None:
        lines.append(f"{words['category']}{words['colon']}{words[hint.category]}")
    if hint.keywords is not None:
        lines.append(f"{words['keywords']}{words['colon']}{listed(hint.keywords)}")
    if hint.paths:
        lines.append(f"{words['paths']}{words['colon']}{'; '.join(hint.paths)}")
    return "\n".join(lines)
