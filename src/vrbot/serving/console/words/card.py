"""The page of the model card, and the card's own phrases in Chinese."""

from __future__ import annotations

import re
from collections.abc import Mapping

from vrbot.serving.console.words import Table

WORDS: Table = {
    "en": {
        "heading": "Model card",
        "note": "What the model is, what it learned from, how well it did, and what it is not for.",
        "none": "No model card",
        "none text": "No model is served, or it is one that does not describe itself.",
        "fingerprint": "Fingerprint of the served model",
        "download": "Download",
    },
    "zh": {
        "heading": "模型卡",
        "note": "模型是什么、从哪些数据学习、效果如何，以及不适用于什么。",
        "none": "没有模型卡",
        "none text": "当前没有加载模型，或该模型没有自述信息。",
        "fingerprint": "当前模型的指纹",
        "download": "下载",
    },
}

OPENINGS: Mapping[str, str] = {
    "Drafts of replies in text consultations": (
        "为文字问诊撰写回复草稿，并给出其背后的患者状态和医生行为，供医生采纳、修改或拒绝，也用于研究。"
    ),
    "It is not a medical device": (
        "它不是医疗器械，不提供医疗建议。草稿须经医生阅读并批准后方可发送给患者；其中的药物只是建议，绝不是处方。"
        "模型只了解训练对话和知识图谱中的内容：其他语言、科室、疾病或表达方式会得到读起来通顺却错误的回复。"
        "它会重复所学医生的习惯和错误。概率和占比是模型自身的数值，不是证据。它不能识别急症。"
    ),
}
"""Long paragraphs by how they begin."""
PHRASES: Mapping[str, str] = {
    "Sizes": "规模",
    "Training": "训练",
    "Validation": "验证",
    "Intended use and limits": "用途与局限",
    "Files": "文件",
    "what": "项目",
    "size": "数值",
    "parameters": "参数量",
    "words": "词数",
    "entities": "实体数",
    "graph": "知识图谱",
    "embedding and hidden size": "嵌入与隐藏层大小",
    "state and action length": "状态与行为长度",
    "hops in the graph": "图谱跳数",
    "segmenter": "分词器",
    "split": "数据集",
    "dialogues": "对话",
    "turns": "轮次",
    "dialogues that name entities": "含实体的对话",
    "train": "训练",
    "valid": "验证",
    "test": "测试",
    "measure": "指标",
    "score": "得分",
    "Not validated.": "未验证。",
    "manifest.json holds the SHA-256 of every file; a model with a changed file is not loaded.": (
        "manifest.json 记录每个文件的 SHA-256；任何文件被改动的模型都不会被加载。"
    ),
}
PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"([\d,]+) triples in (\d+) relations"), r"\1 条三元组，\2 种关系"),
    (
        re.compile(r"Scores on the validation split after step (\d+), chosen for the best (\S+)\."),
        r"第 \1 步在验证集上的得分（按 \2 最佳选取）。",
    ),
    (re.compile(r"Labels used: (.*)\. Corpus fingerprint: (\w+)\."), r"使用的标注：\1。语料指纹：\2。"),
    (re.compile(r"(\w+) of (\d+%) of the dialogues"), r"\2 对话的 \1"),
    (re.compile(r"\. Seed: (\d+)"), r"；种子：\1"),
)


def in_language(phrase: str, language: str) -> str:
    """A phrase of the card; in Chinese where the card is known to write it so, else as it stands."""
    if language != "zh":
        return phrase
    if phrase in PHRASES:
        return PHRASES[phrase]
    for opening, chinese in OPENINGS.items():
        if phrase.startswith(opening):
            return chinese
    for pattern, chinese in PATTERNS:
        phrase = pattern.sub(chinese, phrase)
    return phrase
