"""How old the patient is, by the words of whoever writes: the child who is ill, where a child is."""

from __future__ import annotations

import re
from collections.abc import Iterable

ADULT = 18
_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九十")} | {"两": 2, "俩": 2}
_NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
)
_WORDS = {word: number for number, word in enumerate(_NUMBER_WORDS)} | {"a": 1, "an": 1}
_NUMBER = r"(\d{1,3}(?:\.\d)?|[一二两三四五六七八九十]{1,3})"
_ENGLISH_NUMBER = rf"(\d{{1,3}}(?:\.\d)?|{'|'.join(_WORDS)})"
_CHILD = r"(?:小?宝宝?|婴儿?|孩子?|娃|儿子|女儿|小孩)"
_YEARS = (
    re.compile(rf"{_NUMBER}周?岁"),
    re.compile(rf"\b{_ENGLISH_NUMBER}[ -]years?[ -]old\b"),
    re.compile(
        rf"\b(?:aged?|(?:son|daughter|child|kid|boy|girl|he|she) is|i'?m|i am) {_ENGLISH_NUMBER}\b"
        r"(?! ?(?:month|week|day|hour|kg|%))(?! \w+ pregnant)"
    ),
)
_MONTHS = (
    re.compile(rf"{_NUMBER}个半?月大?的?{_CHILD}"),
    re.compile(rf"{_CHILD}(?:才|刚|现在)?{_NUMBER}个半?月"),
    re.compile(rf"\b{_ENGLISH_NUMBER}[ -]months?[ -]old\b"),
)
_ASKED = re.compile(r"多大|几岁|年龄|几个月大|\bhow old\b|\bage\b")
_BARE_YEARS = re.compile(
    rf"\W*{_NUMBER}(?:岁|周岁|多|了)*\W*\Z|\W*(?:(?:he|she|it)(?:'s| is) )?{_ENGLISH_NUMBER}\b(?! ?m)"
)
_BARE_MONTHS = re.compile(rf"\W*{_NUMBER}个半?多?月|\W*(?:(?:he|she|it)(?:'s| is) )?{_ENGLISH_NUMBER} ?months?\b")
_THEN = re.compile(r"(?:的?时候?|那[年时]|开始|起)(?!来)")
_WHEN = re.compile(r"\b(?:when|since|until) (?:i|he|she) was (?:only |about )?\Z|\bat (?:the age of )?\Z|\bi was \Z")
_KIN = re.compile(
    r"宝|婴|孩|娃|儿子|女儿|闺女|孙|弟弟|妹妹|外甥|侄|小朋友|[他她]"
    r"|\b(?:sons?|daughters?|child|children|kids?|baby|boy|girl|toddler|infant|brother|sister|nephew|niece|he|she"
    r"|(?:year|month)s?[ -]old)\b|\bgrand(?:son|daughter|child)"
)
_ILL = (
    r"发烧|发热|高烧|低烧|咳|疼|痛|吐|泻|拉肚子|拉稀|感冒|不舒服|难受|疹|炎|流鼻涕|鼻塞|喘|病了|生病|烧到"
    r"|fever|temperature|cough|pain|hurt|ache|aching|sick|\bill\b|unwell|vomit|diarrh|rash|\bcold\b|flu\b|sore|runny|wheez"
    r"|infect"
)
_IS_ILL = re.compile(_ILL)
_SELF_ILL = re.compile(
    r"(?:\bi(?:'m| am| have| feel| got|'ve| had)\b|我(?!家|的?(?:宝|孩|女|儿|娃)))"
    r"(?:(?!\b(?:she|he|her|his|my|son|daughter|baby|child|month|kid)\b)[^.!?。！？宝孩娃她他女儿]){0,40}?"
    rf"(?:{_ILL})"
)


def age_in(folded: str) -> float | None:
    """The age in years: the youngest child's, unless the words say that somebody grown is the one who is ill."""
    found = sorted(_ages(folded))
    grown = [age for _, _, age in found if age >= ADULT]
    children = [(start, end, age) for start, end, age in found if age < ADULT]
    if not grown:
        return min((age for _, _, age in children), default=None)
    spoken_of = [one for one in children if _KIN.search(_sentence(folded, *one[:2]))]
    ill = [age for start, end, age in spoken_of if _child_is_ill(folded, start, end)]
    if ill:
        return min(ill)
    if spoken_of and not _SELF_ILL.search(folded):
        return min(age for _, _, age in spoken_of)
    return grown[0]


def youngest(ages: Iterable[float | None]) -> float | None:
    """Of ages told in several texts the youngest child's, else the first."""
    known = [age for age in ages if age is not None]
    return min((age for age in known if age < ADULT), default=known[0] if known else None)


def age_answered(question: str, answer: str) -> float | None:
    """The age in a bare number, if that is what was asked for."""
    if not _ASKED.search(question):
        return None
    for pattern, unit in ((_BARE_MONTHS, 12.0), (_BARE_YEARS, 1.0)):
        hit = pattern.match(answer)
        if hit:
            return _number(hit.group(1) or hit.group(2)) / unit
    return None


def _ages(folded: str) -> Iterable[tuple[int, int, float]]:
    """Where ages are told that are those of today."""
    for patterns, unit in ((_MONTHS, 12.0), (_YEARS, 1.0)):
        for pattern in patterns:
            for hit in pattern.finditer(folded):
                if not _THEN.match(folded, hit.end()) and not _WHEN.search(folded[: hit.start()][-40:]):
                    yield hit.start(), hit.end(), _number(hit.group(1)) / unit


def _sentence(folded: str, start: int, end: int) -> str:
    begin = max(folded.rfind(mark, 0, start) for mark in ".!?。！？\n") + 1
    stop = min((place for mark in ".!?。！？\n" if (place := folded.find(mark, end)) >= 0), default=len(folded))
    return folded[begin:stop]


def _child_is_ill(folded: str, start: int, end: int) -> bool:
    """Whether something ails the child, up to where the writer's own complaints begin."""
    begin = max(folded.rfind(mark, 0, start) for mark in ",.!?，。！？\n") + 1
    own = _SELF_ILL.search(folded, end)
    return _IS_ILL.search(folded, begin, own.start() if own else len(folded)) is not None


def _number(text: str) -> float:
    if text in _WORDS:
        return float(_WORDS[text])
    if text[0].isdigit():
        return float(text)
    tens, ten, ones = text.partition("十")
    if not ten:
        return float(_DIGITS[text[-1]])
    return 10.0 * (_DIGITS.get(tens, 1) if tens else 1) + (_DIGITS.get(ones, 0) if ones else 0)
