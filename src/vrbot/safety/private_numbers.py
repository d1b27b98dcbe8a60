"""Private details that are told by their form: numbers, mail addresses, dates. Each finder yields (start, end)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import Pattern

_IS = r"\s*(?:号码?|number|no\.?|id)?\s*(?:是|为|is|was|[:：#])?\s*"
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
)
_DAY = r"(?:3[01]|[12]\d|0?[1-9])"
_NUMERAL = "[一二三四五六七八九十]"
_NOT_A_DOSE = r"(?!\s?(?:mg|ml|g\b|%|℃|度|次|片|粒|mmol|kg))"

_EMAIL = [r"(?<![A-Za-z0-9._+-])[A-Za-z0-9][A-Za-z0-9._+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{2,24}){1,4}"]
_IDENTITY = [
    r"(?<![0-9A-Za-z])[1-9]\d{5}(?:18|19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[0-9Xx](?![0-9A-Za-z])",
    r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])",
    rf"(?:身份证|证件|护照|军官证|passport|ssn|social security|nhs){_IS}"
    r"(?P<kept>[A-Za-z]{0,2}\d[\dXx -]{5,18}[\dXx])",
]
_WECHAT = [
    rf"(?:微信|威信|薇信|wechat|weixin|vx|v信){_IS}(?P<kept>[A-Za-z][\w-]{{4,19}}|1[3-9]\d{{9}})",
    r"(?<![A-Za-z0-9_])(?P<kept>wxid_[A-Za-z0-9]{4,24})",
]
_QQ = [rf"(?<![A-Za-z])qq{_IS}(?P<kept>[1-9]\d{{4,11}})(?!\d)"]
_RECORD = [
    r"(?:病历|住院|门诊|病案|就诊卡|就诊|医保卡|医保|社保卡|登记|条码|检查|档案|挂号|床|标本|病理|影像|诊疗卡)号"
    r"(?:码|是|为|[:：#]|\s){0,4}(?P<kept>[A-Za-z]{0,4}-?\d[A-Za-z0-9-]{2,19})(?!\d)",
    r"(?:\bmrn|medical record|chart|hospital|patient id|case|policy|record|account|insurance|accession)"
    rf"(?:\s+(?:number|no\.?|id))?{_IS}(?P<kept>[A-Za-z]{{0,4}}-?\d[A-Za-z0-9-]{{3,19}})",
]
_BANK = [
    r"(?<![\d.])\d{4}(?:[ -]\d{4}){3}(?:[ -]\d{1,4})?(?![\d])",
    r"(?<![\d.])[3-9]\d{15}(?:\d{3})?(?!\d)",
    rf"(?:卡号|银行卡|账号|card|account){_IS}(?P<kept>\d[\d -]{{10,22}}\d)",
]
_PHONE = [
    r"(?<![\d.])(?:\+?86[- ]?)?1[3-9]\d[- ]?\d{4}[- ]?\d{4}(?!\d)",
    r"(?<![\d.])0\d{2,3}[- ]?\d{7,8}(?!\d)",
    r"(?<![\d.])[48]00[- ]?\d{3}[- ]?\d{4}(?!\d)",
    r"(?<![\d.])(?:\+?1[-. ])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[-. ])\d{3}[-. ]\d{4}(?!\d)",
    r"(?<![\d.])(?:\+44 ?|0)\d{3,4} ?\d{3} ?\d{3,4}(?!\d)",
    r"(?<![\d.])\+\d{1,3}(?:[ -]?\d{2,4}){2,4}(?!\d)",
    rf"(?:电话|手机|座机|联系方式|\btel|\bphone|\bmobile|call me on){_IS}(?P<kept>\+?\d[\d -]{{5,14}}\d)",
]
_DATE = [
    rf"(?<!\d)(?:(?:19|20)\d{{2}}|\d{{2}})年\s?(?:1[0-2]|0?[1-9])月(?:\s?{_DAY}[日号]?)?",
    rf"(?<!\d)(?:1[0-2]|0?[1-9])月\s?{_DAY}[日号]",
    rf"(?<![\d.])(?:19|20)\d{{2}}[-/.](?:1[0-2]|0?[1-9])[-/.]{_DAY}(?!\d)",
    rf"(?<![\d/.])(?:{_DAY}[-/.](?:1[0-2]|0?[1-9])|(?:1[0-2]|0?[1-9])[-/.]{_DAY})[-/.](?:19|20)\d{{2}}(?!\d)",
    rf"(?<![A-Za-z])(?-i:{_MONTH}) {_DAY}(?:st|nd|rd|th)?(?!\d){_NOT_A_DOSE}(?:,? (?:19|20)\d{{2}})?",
    rf"(?<!\d){_DAY}(?:st|nd|rd|th)?(?: of)? (?-i:{_MONTH})(?![A-Za-z])(?:,? (?:19|20)\d{{2}})?",
    rf"[一二〇零三四五六七八九]{{4}}年{_NUMERAL}{{1,2}}月(?:{_NUMERAL}{{1,3}}[日号])?",
    rf"(?<!{_NUMERAL}){_NUMERAL}{{1,2}}月{_NUMERAL}{{1,3}}[日号]",
]


def _joined(patterns: list[str]) -> tuple[Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


BY_FORM: tuple[tuple[str, tuple[Pattern[str], ...]], ...] = (
    ("EMAIL", _joined(_EMAIL)),
    ("WECHAT", _joined(_WECHAT)),
    ("QQ", _joined(_QQ)),
    ("RECORD", _joined(_RECORD)),
    ("ID", _joined(_IDENTITY)),
    ("BANK", _joined(_BANK)),
    ("PHONE", _joined(_PHONE)),
    ("DATE", _joined(_DATE)),
)
"""Kinds and their expressions, the surest first; a group `kept` is the detail itself, what stands before it a cue."""


def numbers_in(text: str) -> Iterator[tuple[str, int, int]]:
    """(kind, start, end) of every detail, the surest kinds first; they may overlap."""
    for kind, patterns in BY_FORM:
        for pattern in patterns:
            group = "kept" if "kept" in pattern.groupindex else 0
            yield from ((kind, *hit.span(group)) for hit in pattern.finditer(text))
