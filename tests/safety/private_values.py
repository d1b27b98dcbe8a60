"""Invented private details, by kind and language; the two halves of every list share no entry.

Nothing here is read by the rules: names, streets, cities and hospitals were listed for the test alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

_FILE = Path(__file__).parent / "templates" / "private_words.json"
WORDS: dict[str, list[str]] = json.loads(_FILE.read_text("utf-8"))

Half = int
"""0 is the development half, 1 the held-out half."""


def pick(kind: str, half: Half, rng: Random) -> str:
    """A word of this half of the list."""
    return rng.choice(WORDS[kind][half::2])


def name(language: str, half: Half, rng: Random) -> str:
    if language == "en":
        return f"{pick('first_names', half, rng)} {pick('last_names', half, rng)}"
    surname = pick("surnames" if rng.random() < 0.95 else "compound_surnames", half, rng)
    return surname + pick("given", half, rng)


def phone(language: str, half: Half, rng: Random) -> str:
    digits = _digits(rng, 9)
    if language == "en":
        area = f"{rng.randint(201, 989)}"
        forms = (
            f"({area}) {rng.randint(200, 999)}-{digits[:4]}",
            f"+44 7{digits[:3]} {digits[3:9]}",
            f"{area}-{rng.randint(200, 999)}-{digits[:4]}",
            f"+1 {area} {rng.randint(200, 999)} {digits[:4]}",
            f"{area}.{rng.randint(200, 999)}.{digits[:4]}",
            f"07{digits[:3]} {digits[3:9]}",
        )
    else:
        mobile = f"1{rng.choice('3578')}{digits}"
        forms = (
            mobile,
            f"{mobile[:3]}-{mobile[3:7]}-{mobile[7:]}",
            f"010-{rng.randint(10000000, 99999999)}",
            f"{mobile[:3]} {mobile[3:7]} {mobile[7:]}",
            f"+86 {mobile}",
            f"0571{rng.randint(10000000, 99999999)}",
        )
    return rng.choice(forms[half::2])


def identity(language: str, half: Half, rng: Random) -> str:
    if language == "en":
        forms = (f"{rng.randint(100, 665):03d}-{rng.randint(10, 99)}-{rng.randint(1000, 9999)}",)
        return rng.choice(forms)
    born = f"{rng.randint(1940, 2015)}{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}"
    area = rng.choice(["110105", "310115", "440305", "330106", "510107"])
    return f"{area}{born}{_digits(rng, 3)}{rng.choice('0123456789X')}"


def address(language: str, half: Half, rng: Random) -> str:
    if language == "en":
        flat = rng.choice(["", f", Apt {rng.randint(1, 40)}B"]) if half else ""
        return f"{rng.randint(1, 999)} {pick('roads', half, rng)}{flat}, {pick('towns', half, rng)}"
    city, district = pick("cities", half, rng), pick("districts", half, rng)
    street = f"{pick('streets', half, rng)}{rng.randint(1, 300)}号"
    house = f"{rng.randint(1, 30)}栋{rng.randint(1, 4)}单元{rng.randint(101, 2502)}室"
    home = pick("communities", half, rng) + house
    return rng.choice([f"{city}{district}{street}", f"{city}{district}{home}", f"{district}{street}{home}"])


def date(language: str, half: Half, rng: Random) -> str:
    year, month, day = rng.randint(1950, 2024), rng.randint(1, 12), rng.randint(1, 28)
    if language == "en":
        forms = (
            f"{WORDS['months'][month - 1]} {day}, {year}",
            f"{day} {WORDS['months'][month - 1]} {year}",
            f"{month:02d}/{day:02d}/{year}",
            f"{year}-{month:02d}-{day:02d}",
            f"{WORDS['months'][month - 1][:3]} {day}th",
            f"{WORDS['months'][month - 1][:3]}. {day}, {year}",
        )
    else:
        forms = (
            f"{year}年{month}月{day}日",
            f"{year}-{month:02d}-{day:02d}",
            f"{month}月{day}号",
            f"{year}.{month}.{day}",
            f"{year}年{month}月{day}号",
            f"{year}/{month}/{day}",
        )
    return rng.choice(forms[half::2])


def hospital(language: str, half: Half, rng: Random) -> str:
    return pick(f"hospitals_{language}", half, rng)


def record(language: str, half: Half, rng: Random) -> str:
    forms = (_digits(rng, 8), f"ZY{_digits(rng, 7)}", f"{_digits(rng, 6)}", f"{rng.choice('ABHM')}{_digits(rng, 9)}")
    return rng.choice(forms[half::2])


def email(language: str, half: Half, rng: Random) -> str:
    return f"{pick('mailboxes', half, rng)}@{pick('mail_hosts', half, rng)}"


def wechat(language: str, half: Half, rng: Random) -> str:
    return pick("wechat", half, rng)


def qq(language: str, half: Half, rng: Random) -> str:
    return f"{rng.randint(1, 9)}{_digits(rng, rng.randint(5, 9))}"


def bank(language: str, half: Half, rng: Random) -> str:
    digits = f"62{_digits(rng, 14 if language == 'en' else rng.choice([14, 17]))}"
    grouped = " ".join(digits[start : start + 4] for start in range(0, len(digits), 4))
    return grouped if half else rng.choice([digits, grouped])


def _digits(rng: Random, count: int) -> str:
    return "".join(rng.choice("0123456789") for _ in range(count))


MAKERS: dict[str, Callable[[str, Half, Random], str]] = {
    "name": name,
    "phone": phone,
    "id": identity,
    "address": address,
    "date": date,
    "hospital": hospital,
    "record": record,
    "email": email,
    "wechat": wechat,
    "qq": qq,
    "bank": bank,
}
