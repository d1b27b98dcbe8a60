"""Whether a text tells not to take a medicine it names.

Only words that govern the name count: right before it, or with nothing but "take", "use", "any" in between; or right
after it. Words against something else ("do not worry", "不能超过三次") leave the medicine proposed, and so do words
that only say how to take it ("not on an empty stomach"). In doubt it is proposed, and so it is checked.
"""

from __future__ import annotations

import re

from vrbot.safety.medicines import DrugMention, clause_around, find_drugs

_NEGATION = (
    r"不要|不能|不可以?|不宜|不应该?|不该|不得|不必|不需要|不用|不建议|不推荐|不主张|无需|请勿|切勿|勿"
    r"|(?<![特个分区性级类])别(?!的)"
    r"|\b(?:do|does|should|must|would|could|may|can|need) ?not\b"
    r"|\b(?:do|does|should|must|would|could|ca|need)n['’]?t\b|\bnever\b|\bnot to\b|\bbetter not\b"
)
_STOPPING = (
    r"避免|避开|禁止|禁用|忌用|忌服|忌|停用|停掉|停服|停止|先停|(?<!不)停"
    r"|\b(?:avoid|avoiding|stop|stopping|discontinue|withhold|refrain from|(?:stay|keep) away from)\b"
)
_TAKING = (
    r"服用|使用|口服|应用|注射|外用|给予|加用|继续|自行|擅自|随便|随意|盲目|任何|含有?|您|你|患者|孩子|宝宝|再|给|吃|服|用|喝|打|开|买|加|的"
    r"|\b(?:take|taking|taken|use|using|give|giving|given|be|have|having|try|trying|start|starting|add|adding|apply"
    r"|swallow|drink|recommend|advise|suggest|prescribe|continue|any more|any|your|the|this|of|to|him|her|them)\b"
)
_GOVERNS = re.compile(
    rf"(?P<before>.*?)(?P<cue>(?P<negation>{_NEGATION})|(?:{_STOPPING}))(?:[\s“\"（(]*(?:{_TAKING}))*[\s“\"（(]*\Z",
    re.IGNORECASE | re.DOTALL,
)
_CANCELLED = re.compile(rf"(?:{_NEGATION})[\s]*(?:擅自|自行|突然|随便|suddenly|just)?\s*\Z", re.IGNORECASE)
"""What is not to be stopped is to be taken."""
_QUESTION = re.compile(r"(?:要|能|可|该|应|得|\bwhy )\s*\Z", re.IGNORECASE)
"""要不要, 能不能, 不得不, "why not": nothing is denied."""

_FORM = r"(?:缓释|混悬|胶囊|颗粒|滴剂|片|液|药|等|类|\s|[”\"）)]|\b(?:tablets?|capsules?|drops|syrup)\b)*"
_ONLY_HOW = re.compile(
    rf"{_FORM}(?:的?时|之?前|之?后|以后|期间|同时|超过|太|过|空腹|一起|[一每]天|每|与|[\d一二两三四五六七八九十]"
    r"|和.{1,8}一起|\b(?:on|with|without|more|for (?:more|longer|over)|too|every|at|before|after|until|unless|once"
    r"|twice|than|within|together|if|when|instead|is fine|is ok)\b)",
    re.IGNORECASE,
)
_AFTER = re.compile(
    rf"{_FORM}(?:也|都|就|暂时|先|绝对|千万|现在|要|应|应该|需要?|必须|您|你)*"
    r"(?:(?:不要|不能|不可以?|不宜|不应该?|不该|不建议|不推荐|不必|不用|请?勿|别)(?:您|你|再|继续|给)*"
    r"(?:服用|使用|口服|应用|吃|服|用|喝|打)|禁用|忌用|禁服|停用|停掉|停服|停)(?:了|的|吧|药)*[\s”\"）)]*\Z",
)
_AFTER_ENGLISH = re.compile(
    rf"{_FORM}(?:(?:must|should|may|can) ?not be|(?:must|should|ca)n['’]t be) (?:taken|used|given)\b(?P<a>.*)"
    rf"|{_FORM}(?:is|are) (?:contraindicated|not (?:suitable|recommended|advised|allowed))\b(?P<b>.*)"
    rf"|{_FORM}(?:must|should|needs? to) be (?:avoided|stopped|discontinued)\b(?P<c>.*)",
    re.IGNORECASE | re.DOTALL,
)
_LIST = re.compile(r"\s*(?:、|/|和|或者?|及|与|以及|\band\b|\bor\b|\bnor\b)\s*\Z", re.IGNORECASE)


def advised_against(text: str, mention: DrugMention) -> bool:
    """Whether the text tells not to take it."""
    begin, end = clause_around(text, mention.start, mention.end)
    before, after = text[begin : mention.start], text[mention.end : end]
    if _rejected_after(after):
        return True
    return not _ONLY_HOW.match(after) and (_governed(before) or _in_rejected_list(before))


def _governed(before: str) -> bool:
    """Whether words against end right before the name."""
    hit = _GOVERNS.match(before)
    if hit is None or _QUESTION.search(hit["before"]):
        return False
    return hit["negation"] is not None or not _CANCELLED.search(hit["before"])


def _in_rejected_list(before: str) -> bool:
    """Whether the name stands with others that the same words govern: "avoid A or B"."""
    link = _LIST.search(before)
    if link is None:
        return False
    earlier = find_drugs(before[: link.start()])
    if not earlier or earlier[-1].end != link.start():
        return False
    head = before[: earlier[-1].start]
    return _governed(head) or _in_rejected_list(head)


def _rejected_after(after: str) -> bool:
    """Whether words against follow the name at once, and say more than how to take it."""
    if _AFTER.match(after):
        return True
    hit = _AFTER_ENGLISH.match(after)
    return hit is not None and not _ONLY_HOW.match(hit["a"] or hit["b"] or hit["c"] or "")
