"""Addresses and hospitals in Chinese and English text."""

from __future__ import annotations

import re
from collections.abc import Iterator

_HAN = r"[\u3400-\u9fff]"
_HAN_OR_DIGIT = r"[\u3400-\u9fff0-9]"
_STREET = (
    r"(?:大道|大街|路|街|巷|弄|胡同|小区|花园|家园|苑|新村|公寓|大厦|庭院|广场|新区|区|县|镇|乡|村|街道|社区"
    r"|里|城|湾|府|园|都会|坊)"
)
_HOUSE = r"\d{1,4}(?:号楼|号院|号|栋|幢|座|弄|单元|室)"
_CHINESE_ADDRESS = re.compile(
    rf"{_HAN_OR_DIGIT}{{0,24}}?{_STREET}{_HAN}{{0,6}}?{_HOUSE}(?:{_HAN}{{0,10}}?\d{{1,4}}(?:号楼|号|栋|幢|座|单元|室|层|户))*"
    rf"|{_HAN}{{2,4}}?(?:省|自治区|市){_HAN}{{2,6}}?(?:市|区|县)(?:{_HAN}{{1,8}}?(?:大道|路|街|镇|乡|村|小区|花园|苑))?"
)
_NOT_A_HOUSE = re.compile(r"(?:住院|门诊|病历|床|编|型|序|几|[一二三四五六七八九十\d]月)\d{0,2}$")
_ADDRESS_CUES = (
    "家住",
    "住在",
    "住址",
    "地址",
    "位于",
    "寄到",
    "送到",
    "寄往",
    "搬到",
    "来自",
    "在",
    "住",
    "到",
    "是",
    "于",
    "从",
    "为",
)

_ENGLISH_ADDRESS = re.compile(
    r"\b\d{1,5}[A-Za-z]?,? (?:[A-Z][\w'.]{0,20} ){1,3}"
    r"(?:Street|St|Avenue|Ave|Road|Rd|Drive|Lane|Ln|Boulevard|Blvd|Court|Ct|Way|Place|Terrace|Close|Square|Crescent|Gardens)\b\.?"
    r"(?:, (?:Apt|Flat|Unit|Suite|Apartment)\.? \w{1,6})?"
    r"(?:, (?:[A-Z][a-z'.]{1,20} ?){1,3}(?:,? [A-Z]{2} \d{5}(?:-\d{4})?| ?[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2})?)?"
    r"|\b(?:P\.?O\.? Box \d{1,6})\b|\b[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}\b"
)

_CHINESE_HOSPITAL = re.compile(rf"{_HAN}{{2,18}}?(?:医院|卫生院|保健院|诊所|卫生服务中心|门诊部|卫生室)")
_HOSPITAL_CUES = re.compile(
    r"(?<![协仁泰])和|去了|去的|到了|约在|住在|[在去到于来从约的给看住往由与是说让找回转及让做查就再没也有时号日]"
)
_HOSPITAL_SIGN = re.compile(
    r"省|市|县|区|镇|乡|州|第[一二三四五六七八九十]|附属|大学|人民|中心|妇幼|中医|协和|同济|华西|湘雅|瑞金|华山|中山|军区|总医|红十字|"
    r"北京|上海|天津|重庆|广州|深圳|武汉|南京|杭州|成都|西安|仁济|友谊|朝阳|安贞|宣武|阜外|积水潭|鼓楼|齐鲁|盛京|博爱|康复"
)
"""A hospital's own name mostly says where it is, whose, or which of several."""

_GENERIC_HOSPITAL = re.compile(
    r"^(?:当地|大|小|三甲|三级|二甲|县|市|省|区|镇|乡|村|附近|这家|那家|这个|那个|我们|其他|其它|别的|正规|上级|社区|私立|公立|综合|专科|我们这|本地|老家|我家|"
    r"一家|几家|家|哪家|哪个|好的?|更大|外地|各大|本|贵|该|某|儿童|妇产|中|口腔|眼科|肿瘤|骨科|精神|心理|个人|宠物|定点|方舱|发热|隔离|原来|如果|最好|一定要?|必须|可以|深夜|半夜|立即|马上|尽快|及时|直接|"
    r"需要|建议|今天|明天|昨天|现在|出|入|进|离|送|急诊|门诊|随诊|正式|线下|实体|互联网)*$"
)
_ENGLISH_HOSPITAL = re.compile(
    r"\b(?:(?:[A-Z][\w'’]{1,20}|St\.?|of|and|the) ){1,5}"
    r"(?:Hospital|Clinic|Medical Cent(?:er|re)|Health Cent(?:er|re)|Infirmary|Surgery|Practice)\b"
    r"(?: of [A-Z][a-z]+| for [A-Z][a-z]+)?"
)
_ENGLISH_START = re.compile(
    r"^(?:(?:The|At|My|On|I|In|A|An|He|She|We|They|To|From|of|and|the|Our|This|That|Then|When|Dr|Go|Visit) )+"
)


def places_in(text: str) -> Iterator[tuple[str, int, int]]:
    """(kind, start, end) of hospitals and addresses; they may overlap."""
    for hit in _CHINESE_HOSPITAL.finditer(text):
        start = _after_last_cue(hit.group(), hit.start())
        body = re.sub(r"(?:医院|卫生院|保健院|诊所|卫生服务中心|门诊部|卫生室)$", "", text[start : hit.end()])
        named = _HOSPITAL_SIGN.search(body) or (start > hit.start() and 2 <= len(body) <= 4)
        if len(body) >= 2 and named and not _GENERIC_HOSPITAL.match(body):
            yield "HOSPITAL", start, hit.end()
    for hit in _ENGLISH_HOSPITAL.finditer(text):
        lead = _ENGLISH_START.match(hit.group())
        start = hit.start() + (lead.end() if lead else 0)
        if " " in text[start : hit.end()] and text[start].isupper():
            yield "HOSPITAL", start, hit.end()
    for hit in _CHINESE_ADDRESS.finditer(text):
        start = _address_start(hit.group(), hit.start())
        if hit.end() - start >= 5 and not _NOT_A_HOUSE.search(text[start : hit.end() - 1]):
            yield "ADDRESS", start, hit.end()
    for hit in _ENGLISH_ADDRESS.finditer(text):
        yield "ADDRESS", hit.start(), hit.start() + len(hit.group().rstrip(", "))


def _after_last_cue(found: str, start: int) -> int:
    ends = [hit.end() for hit in _HOSPITAL_CUES.finditer(found) if hit.end() <= len(found) - 2]
    return start + (ends[-1] if ends else 0)


def _address_start(found: str, start: int) -> int:
    """Behind the last cue word that still leaves an address."""
    ends = [found.rfind(cue) + len(cue) for cue in _ADDRESS_CUES if 0 <= found.rfind(cue) < len(found) - 6]
    return start + max(ends, default=0)
