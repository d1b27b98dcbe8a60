"""Private details taken out, medical words left in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.safety.private_cases import private_cases
from tests.safety.redflag_cases import rows
from vrbot.safety.deidentify import KINDS, deidentify

NUM_SPANS = {0: 2500, 1: 5000}


@pytest.mark.parametrize("half", [0, 1], ids=["development", "held out"])
def test_98_of_100_details_go_and_999_of_1000_medical_words_stay(half: int) -> None:
    details = hidden = words = kept = 0
    for case in private_cases(half, NUM_SPANS[half]):
        spans = deidentify(case.text).spans
        for _, start, end in case.private:
            details += 1
            hidden += all(any(span.start <= place < span.end for span in spans) for place in range(start, end))
        for _, start, end in case.medical:
            words += 1
            kept += not any(span.start < end and start < span.end for span in spans)
    assert details >= NUM_SPANS[half]
    assert hidden / details >= 0.98
    assert kept / words >= 0.995


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我叫张三丰，电话13812345678", "我叫[NAME]，电话[PHONE]"),
        ("谢谢李医生", "谢谢[NAME]医生"),
        ("北京协和医院", "[HOSPITAL]"),
        ("建议去医院检查", "建议去医院检查"),
        ("Dr. Parkinson says it is Parkinson's disease", "Dr. [NAME] says it is Parkinson's disease"),
        ("血压120/80，体温38.5℃，血糖7.2 mmol/L", "血压120/80，体温38.5℃，血糖7.2 mmol/L"),
        ("王不留行和何首乌能一起吃吗", "王不留行和何首乌能一起吃吗"),
        ("张力性头痛三天了", "张力性头痛三天了"),
        ("My SSN is 123-45-6789, mail a.b@c.org", "My SSN is [ID], mail [EMAIL]"),
        ("Doctor. We're both fine", "Doctor. We're both fine"),
        ("发烧三天，2015年做过手术", "发烧三天，2015年做过手术"),
    ],
)
def test_examples(text: str, expected: str) -> None:
    assert deidentify(text).text == expected


PIECES = (
    *("我叫", "张伟", "王", "医生", "13812345678", "2020-01-02", "北京市朝阳区建国路1号", "协和医院", " ", "，", "Dr "),
    *(
        "John Smith",
        "Hodgkin",
        "[NAME]",
        "[",
        "]",
        "病历号",
        "62",
        "1234",
        "。",
        "Hospital",
        "\ud800",
        "a@b.cn",
        "MRN ",
    ),
)
MIXED = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@given(st.one_of(st.text(max_size=120), MIXED))
def test_doing_it_again_changes_nothing(text: str) -> None:
    once = deidentify(text)
    assert deidentify(once.text).text == once.text


@given(st.one_of(st.text(max_size=120), MIXED))
def test_spans_lead_back_to_the_original(text: str) -> None:
    result = deidentify(text)
    rebuilt, read = "", 0
    for span in result.spans:
        assert result.text[span.placed_start : span.placed_end] == f"[{span.kind}]"
        assert span.kind in KINDS
        rebuilt += result.text[read : span.placed_start] + text[span.start : span.end]
        read = span.placed_end
    assert rebuilt + result.text[read:] == text


@given(MIXED)
def test_a_character_outside_the_placeholders_is_found_in_the_original(text: str) -> None:
    result = deidentify(text)
    inside = {place for span in result.spans for place in range(span.placed_start, span.placed_end)}
    for place, character in enumerate(result.text):
        if place not in inside:
            assert text[result.original_offset(place)] == character


def test_the_result_does_not_hold_what_was_taken_out() -> None:
    assert "13812345678" not in repr(deidentify("电话13812345678"))


def test_medical_words_alone_stay_whole() -> None:
    changed = [term for _, term in rows("kept_terms") if deidentify(f"诊断{term}。").text != f"诊断{term}。"]
    assert changed == []
