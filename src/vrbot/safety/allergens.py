"""Which medicines the patient's words call allergens: by name, as an exception, in a list, by what they did."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vrbot.safety.medicines import DrugMention, clause_around

ALLERGY = re.compile(r"过敏|皮试阳性|\ballerg\w+|\breaction to\b|\breact(?:s|ed)? (?:badly )?to\b")
NO_ALLERGY = re.compile(
    r"不过敏|[没无]有?\S{0,6}过敏|否认\S{0,8}过敏|\b(?:not|no|never|denies|without|n't)\b[^,.;]{0,25}allerg|皮试阴性"
)
_NAME = "\x00"
_NAMES = rf"(?:[{_NAME}\s,，、/]|和|及|与|或|\band\b|\bor\b)*\Z"
_EXCEPT = re.compile(
    r"(?:除了?|只有?对?|仅对?|就对?"
    r"|\b(?:except(?:ing)?(?: for)?|apart from|other than|aside from|besides|with the exception of|save for|bar"
    rf"|but(?: for| only)?|only|just)\b)\s*(?:\bto\b|\bfor\b|\bthe\b|对)?{_NAMES}"
)
_OUTSIDE = re.compile(rf"除了?对?{_NAMES}")
_OTHERWISE = re.compile(
    r"(?:类?药?物?过敏)?(?:以外|之外|外)?[，,]?\s*(?:其他|其它|别的|药物?|都|均|我|就|也|食物|和)*(?:没|无|不|否认|未|对[^。！？；!?;\n]{1,12}也)[^。！？；!?;\n]*过敏"
)
_LABEL = re.compile(
    rf"(?:过敏史?|过敏原|过敏药物?|\ballerg(?:y|ies|ic|ens?)(?: to| history)?)\s*(?:为|是)?[:：]{_NAMES}"
)
_SIGN = r"(?:rash|hives|itch|swell|swollen|breathless|wheez|anaphyla|blotch|welts|spots)"
_DOES = re.compile(
    r"\s*(?:tablets? |capsules? )?(?:always |once |really |usually )?"
    rf"(?:gives?|gave|caused?|causes|brings?|brought|makes?|made|triggers?|triggered)\b[^.;!?,]{{0,30}}{_SIGN}"
    r"|(?:后|之后|以后|就|会|总是?|了|过|药|针)*[，,]?(?:全身|浑身|身上|皮肤|就|会|也)*"
    r"(?:(?:起|出|长|发)了?(?:很多|好多|一身|满身|红|皮|大|小|的)*(?:疹|风团|荨麻疹|疙瘩)|喉头水肿|休克|嘴唇?肿|脸肿)(?!吗|么)"
)
_AFTER_IT = re.compile(
    rf"\b(?:got|get|gets|had|have|came|come|broke|break|developed?)\b[^.;!?,]{{0,20}}{_SIGN}\w*\b[^.;!?,]{{0,12}}"
    r"\b(?:after|from)\s+(?:taking |having |being given |an? |the )?\Z"
)
_SENTENCE_END = re.compile(r"[。！？!?；;\n]|\.(?!\d)")


def is_allergen(folded: str, mention: DrugMention, names: Sequence[DrugMention]) -> bool:
    """Whether the text says that this one of its `names` is what the patient does not bear."""
    begin, end = clause_around(folded, mention.start, mention.end)
    told = _sentence_before(folded, mention.start, names)
    if _DOES.match(folded, mention.end) or _AFTER_IT.search(told):
        return True
    if _LABEL.search(told) or _is_exception(folded, mention, told):
        return True
    clause = folded[begin:end]
    own = _nearest(clause, mention.start - begin, mention.end - begin)
    if own is None:
        return bool(ALLERGY.match(folded, end + 1)) and not NO_ALLERGY.search(clause)
    earlier = [hit.end() for hit in ALLERGY.finditer(clause) if hit.end() <= own[0]]
    stretch = clause[max(earlier, default=0) : max(own[1], mention.end - begin)]
    return NO_ALLERGY.search(stretch) is None and "皮试阴性" not in clause


def _nearest(clause: str, start: int, end: int) -> tuple[int, int] | None:
    """The word of allergy that stands nearest to the name, behind it rather than before it."""
    spans = [hit.span() for hit in ALLERGY.finditer(clause)]
    gaps = {span: (span[0] - end if span[0] >= end else start - span[1], span[0] < end) for span in spans}
    return min(gaps, key=lambda span: gaps[span], default=None)


def _sentence_before(folded: str, start: int, names: Sequence[DrugMention]) -> str:
    """What the sentence says before `start`, with names of medicines blanked."""
    earliest = max(0, start - 200)
    begin = max((hit.end() for hit in _SENTENCE_END.finditer(folded, earliest, start)), default=earliest)
    told = folded[begin:start]
    for name in names:
        if begin <= name.start and name.end <= start:
            length = name.end - name.start
            told = told[: name.start - begin] + _NAME * length + told[name.end - begin :]
    return told


def _is_exception(folded: str, mention: DrugMention, told: str) -> bool:
    """ "No allergies except A", "除A外无过敏": what is excepted from a denial is affirmed."""
    hit = _EXCEPT.search(told)
    if hit is None:
        return False
    if NO_ALLERGY.search(told[: hit.start()]):
        return not NO_ALLERGY.match(folded, mention.end)
    return bool(_OUTSIDE.search(told) and _OTHERWISE.match(folded, mention.end))
