"""What human judges are asked, in English and Chinese: three ratings, preferences, and marks of explanations.

The ratings are those of the paper's section on human evaluation: Flu, KC and EQ, from 1 (bad) to 5 (excellent).
"""

from __future__ import annotations

from dataclasses import dataclass

LOWEST, HIGHEST = 1, 5


@dataclass(frozen=True)
class Wording:
    """One text in both languages of the console."""

    en: str
    zh: str


@dataclass(frozen=True)
class Criterion:
    """A rating from 1 to 5: its short name, what it asks, and what the ends of the scale mean."""

    key: str
    name: Wording
    question: Wording
    worst: Wording
    best: Wording


@dataclass(frozen=True)
class Question:
    """Any other question, by the key under which answers are stored."""

    key: str
    question: Wording


CRITERIA = (
    Criterion(
        "Flu",
        Wording("Fluency", "流畅度"),
        Wording(
            "Does it read like something a person would write? Judge the language alone, even if the advice is wrong.",
            "这句话读起来像人写的吗？只看语言是否通顺自然，内容对错不计。",
        ),
        Wording("broken, repetitive or impossible to follow", "语句不通、重复或看不懂"),
        Wording("natural and smooth throughout", "自然通顺"),
    ),
    Criterion(
        "KC",
        Wording("Knowledge correctness", "知识正确性"),
        Wording(
            "Is what it says about diseases, symptoms, medicines and tests medically right for this patient?",
            "针对这位患者，回复中关于疾病、症状、药物和检查的内容在医学上正确吗？",
        ),
        Wording("wrong or dangerous", "错误或有危险"),
        Wording("right in every point", "完全正确"),
    ),
    Criterion(
        "EQ",
        Wording("Entire quality", "整体质量"),
        Wording(
            "All in all, how satisfied would you be if this were the answer given at this point of the conversation?",
            "总体来说，如果此时给出的就是这条回复，您有多满意？",
        ),
        Wording("useless here", "毫无用处"),
        Wording("what a good physician would answer", "与好医生的回答相当"),
    ),
)

QUESTIONS = (
    Question(
        "reply",
        Wording(
            "Which reply would you rather give? 1: the first, 2: the second, 0: no difference.",
            "您更愿意给出哪条回复？1：第一条；2：第二条；0：没有差别。",
        ),
    ),
    Question(
        "explanation",
        Wording(
            "Which explanation makes it clearer why a physician would act so? 1: the first, 2: the second, 0: neither.",
            "哪个解释更能说明医生为何这样做？1：第一个；2：第二个；0：没有差别。",
        ),
    ),
    Question(
        "keyword",
        Wording(
            "Do the state, the conversation or a path shown here give a reason for this keyword? 1: yes, 0: no.",
            "所示的患者状态、对话或路径能解释为什么会有这个关键词吗？1：能；0：不能。",
        ),
    ),
    Question(
        "entity",
        Wording(
            "The physician's real reply named this. Do the keywords shown here account for it? 1: yes, 0: no.",
            "医生的真实回复提到了它。所示的关键词能解释它吗？1：能；0：不能。",
        ),
    ),
)

CRITERION_KEYS = tuple(criterion.key for criterion in CRITERIA)
ASPECTS = ("reply", "explanation")
MARKS = ("keyword", "entity")


def guide() -> str:
    """The instructions that lie beside the sheets, in Markdown."""
    lines = ["# How to judge / 评分说明", ""]
    lines += [
        "Every row is one question; an empty answer means that it was not judged. Change nothing but the answers.",
        "Save as CSV in UTF-8. Fill ratings first, then preferences, then explanations: those name what the physician",
        "really said. / 每行一个问题；留空表示未评。请只填写答案，并以 UTF-8 编码的 CSV 保存。",
        "请先填评分，再填偏好，最后填解释：解释表中会出现医生真实回复的内容。",
        "",
        f"## Ratings / 评分: {LOWEST} - {HIGHEST}",
        "",
    ]
    for each in CRITERIA:
        lines += [f"- **{each.key}** {each.name.en} / {each.name.zh}: {each.question.en} {each.question.zh}"]
        lines += [f"  {LOWEST}: {each.worst.en} / {each.worst.zh}; {HIGHEST}: {each.best.en} / {each.best.zh}."]
    lines += ["", "## Preferences and explanations / 偏好与解释", ""]
    lines += [f"- **{each.key}**: {each.question.en} {each.question.zh}" for each in QUESTIONS]
    return "\n".join(lines) + "\n"
