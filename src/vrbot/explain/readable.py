"""Evidence as lines of text, in Chinese or English."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from vrbot.agent.reply import Reply
from vrbot.dialogue.session import CATEGORIES
from vrbot.errors import UsageError
from vrbot.explain.evidence import Evidence, KeywordEvidence, Path, Place, StateEvidence, WordEvidence

Language = Literal["zh", "en"]

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "patient": "patient",
        "physician": "physician",
        "reply": "reply",
        "silence": "(no words)",
        "state": "state",
        "action": "action",
        "keywords": "keywords",
        "words": "words of the reply",
        "none": "none",
        "new": "new",
        "kept": "kept",
        "dropped": "dropped",
        "generated": "generated",
        "remembered": "from the state before",
        "context": "conversation",
        "action source": "action",
        "state source": "state",
        "from_conversation": "from the conversation",
        "from_graph": "from the graph",
        "turn": "turn",
        "because": "explained by",
        "because state": "the state",
        "because context": "the conversation",
        "because path": "a path",
        "unexplained": "nothing explains it",
        "usually after": "usually named after",
        "paths": "paths that carry it",
        "no single path": "{count} paths lead there, none carries it alone",
        "weight": "weight",
        "effect": "without it {effect:+.4f}",
        "changed": "given, not inferred",
        "category": "category",
        "confidence": "confidence",
        "abstain": "do not rely on this reply",
        "unknown words": "too many unknown words",
        "out of domain": "outside what the model has learnt",
        "flat action": "no category stands out",
        "no path": "no keyword is explained",
        "notice": "Weights are the model's, not medical evidence.",
        "ask_symptoms": "ask about symptoms",
        "diagnosis": "diagnose",
        "prescribe_medicine": "suggest medicine",
        "chitchat": "chat",
    },
    "zh": {
        "patient": "患者",
        "physician": "医生",
        "reply": "回复",
        "silence": "（无内容）",
        "state": "状态",
        "action": "行动",
        "keywords": "关键词",
        "words": "回复用词",
        "none": "无",
        "new": "新增",
        "kept": "保留",
        "dropped": "移除",
        "generated": "生成",
        "remembered": "来自上一轮状态",
        "context": "对话",
        "action source": "行动",
        "state source": "状态",
        "from_conversation": "来自对话",
        "from_graph": "来自图谱",
        "turn": "轮次",
        "because": "依据",
        "because state": "状态",
        "because context": "对话",
        "because path": "路径",
        "unexplained": "没有依据",
        "usually after": "通常在这些字句之后提到",
        "paths": "支持路径",
        "no single path": "共有 {count} 条路径可达，没有单独起作用的一条",
        "weight": "权重",
        "effect": "去掉后 {effect:+.4f}",
        "changed": "人工给定",
        "category": "类别",
        "confidence": "置信度",
        "abstain": "请勿依赖此回复",
        "unknown words": "未知词过多",
        "out of domain": "超出模型所学范围",
        "flat action": "没有明显的类别",
        "no path": "关键词没有依据",
        "notice": "权重来自模型，不是医学证据。",
        "ask_symptoms": "询问症状",
        "diagnosis": "诊断",
        "prescribe_medicine": "用药建议",
        "chitchat": "闲聊",
    },
}


def words_of(language: str) -> Mapping[str, str]:
    """The labels in a language; UsageError for one there is not."""
    if language not in WORDS:
        raise UsageError(f"unknown language {language!r}: choose one of {', '.join(WORDS)}")
    return WORDS[language]


def readable(reply: Reply, language: str) -> list[str]:
    """The reply and its evidence, line by line."""
    evidence, words = reply.evidence, words_of(language)
    lines = [f"{words['reply']}: {printable(reply.text) or words['silence']}"]
    if not isinstance(evidence, Evidence):
        return lines
    if evidence.changed:
        lines.append(f"{words['changed']}: " + ", ".join(words[part] for part in evidence.changed))
    if evidence.confidence is not None:
        lines.append(f"{words['confidence']}: {evidence.confidence:.0%}")
    if evidence.abstain:
        lines.append(f"{words['abstain']}: " + ", ".join(words[reason] for reason in evidence.abstain))
    lines += ["", *reasons(reply, language)]
    lines += ["", f"{words['words']}:", *(f"  {line}" for line in _spoken(evidence.words, words))]
    return [*lines, "", words["notice"]]


def reasons(reply: Reply, language: str) -> list[str]:
    """What the state and the action rest on, line by line: mentions, shares, paths and their weights."""
    evidence, words = reply.evidence, words_of(language)
    if not isinstance(evidence, Evidence):
        return []
    lines = list(_state(evidence.state, words))
    if reply.categories is not None:
        shares = "  ".join(f"{words[name]} {reply.categories[name]:.1%}" for name in CATEGORIES)
        lines += [*([""] if lines else []), f"{words['action']}: {shares}"]
    return [*lines, *_keywords(evidence.keywords, words)]


def _state(state: tuple[StateEvidence, ...] | None, words: Mapping[str, str]) -> Iterator[str]:
    if state is None:
        return
    yield f"{words['state']}:" + ("" if state else f" {words['none']}")
    for entity in state:
        causes = [f"{place_text(m.place, words)} “{printable(m.text)}” {m.share:.0%}" for m in entity.mentions]
        causes += [f"{words['remembered']} {entity.remembered:.0%}"] if entity.remembered > 0.005 else []
        causes += [f"{words['generated']} {entity.generated:.0%}"] if entity.generated > 0.005 else []
        mark = {"new": "+", "kept": " ", "dropped": "-"}[entity.status]
        yield f"  {mark} {printable(entity.name)} ({words[entity.status]})" + (
            f": {'; '.join(causes)}" if causes else ""
        )


def _keywords(keywords: tuple[KeywordEvidence, ...] | None, words: Mapping[str, str]) -> Iterator[str]:
    if keywords is None:
        return
    yield f"{words['keywords']}:" + ("" if keywords else f" {words['none']}")
    for keyword in keywords:
        shares = [f"{words[side]} {getattr(keyword, side):.0%}" for side in ("from_conversation", "from_graph")]
        sure = "" if keyword.confidence is None else f", {words['confidence']} {keyword.confidence:.0%}"
        yield f"  {printable(keyword.name)} {keyword.probability:.1%}{sure} ({'; '.join(shares)})"
        reasons = ", ".join(words[f"because {reason}"] for reason in keyword.explained_by)
        yield f"    {words['because']}: {reasons}" if reasons else f"    {words['unexplained']}"
        if keyword.habit_words:
            usual = ", ".join(f"“{printable(word.text)}” {word.score:+.2f}" for word in keyword.habit_words)
            yield f"    {words['usually after']}: {usual}"
        if keyword.paths:
            yield f"    {words['paths']}:"
            yield from (f"      {path_text(path, words)}" for path in keyword.paths)
        elif keyword.num_paths:
            yield f"    {words['no single path'].format(count=keyword.num_paths)}"


def path_text(path: Path, words: Mapping[str, str]) -> str:
    """A path on one line: entities and relations in turn, its weight, and what its absence does."""
    steps = [printable(path.entities[0])]
    for relation, entity in zip(path.relations, path.entities[1:], strict=True):
        steps.append(f"-[{printable(relation)}]-> {printable(entity)}")
    effect = words["effect"].format(effect=-path.effect)
    return f"{' '.join(steps)}  ({words['weight']} {path.weight:.2g}, {effect})"


def _spoken(spoken: tuple[WordEvidence, ...], words: Mapping[str, str]) -> Iterator[str]:
    for word in spoken:
        sources = [f"{words['generated']} {word.generated:.0%}"] if word.generated > 0.005 else []
        for copy in word.copies:
            if copy.share > 0.005:
                where = place_text(copy.place, words) if copy.place else words[f"{copy.source} source"]
                sources.append(f"{where} {copy.share:.0%}")
        yield f"{printable(word.text)} {word.probability:.1%}: {'; '.join(sources)}"


def place_text(place: Place, words: Mapping[str, str]) -> str:
    """Who said it and in which turn, counted from 1."""
    return f"{words[place.speaker]} {words['turn']} {place.turn + 1}"


def printable(text: str) -> str:
    """The text without what would steer a terminal."""
    return "".join(character for character in text if character.isprintable())
