"""The small pattern language of the rule tables, and text made ready for it.

A pattern is a regular expression with four shorthands. `~` is a short gap inside a clause, `~~` a longer one inside a
sentence. English patterns match whole words; a space stands for any blank or hyphen and lets an adverb in, and `*` ends
a word beginning ("wheez*"). Chinese patterns match anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from re import Pattern

from vrbot.knowledge.linking import fold

_GAPS = {
    "zh": (r"[^。！？；，,!?;\n没不无未]{0,6}?", r"[^。！？；!?;\n]{0,16}?"),
    "en": (
        r"(?:[^\w.!?;\n]+(?!(?:not?|never|without|but|now)\b|\w+n't\b|(?:is|was|ha[sd]|have|do|does|did|can|wo)nt\b)"
        r"[\w'%/]+){0,5}?[^\w.!?;\n]+",
        r"(?:[^\w.!?;\n]+[\w'%/]+){0,10}?[^\w.!?;\n]+",
    ),
}
"""The short gap holds no negation, so that "my chest does not hurt" is no chest that hurts."""

_SAME_VERB = {
    "can't": "(?:can't|cant|cannot|can not|couldn't|couldnt|could not|unable to|not able to)",
    "won't": "(?:won't|wont|will not|wouldn't|wouldnt)",
    "isn't": "(?:isn't|isnt|is not|wasn't|wasnt)",
    "hasn't": "(?:hasn't|hasnt|has not|hadn't|hadnt)",
    "haven't": "(?:haven't|havent|have not|'ve not)",
    "don't": "(?:don't|dont|do not)",
    "doesn't": "(?:doesn't|doesnt|does not)",
    "didn't": "(?:didn't|didnt|did not)",
}
"""A table names the short form only; people in a hurry leave the apostrophe out."""

_WORD_REST = r"[\w']*"
_BLANK = (
    r"[ \\-]+(?:(?:suddenly|really|so|very|just|now|completely|badly|terribly|quite|extremely|still|also|even|"
    r"constantly|absolutely|totally|slightly|already|almost)[ \\-]+){0,2}"
)
"""Between two words of an English pattern: "head hurts" is said with "head suddenly hurts" too."""

_LETTER = re.compile(r"[a-z]")
_HAN = re.compile(r"[\u3400-\u9fff]")
_SAME_LENGTH = str.maketrans(
    {"’": "'", "‘": "'", "／": "/", "．": ".", "：": ":", "～": "-"}
    | {chr(0xFF10 + digit): str(digit) for digit in range(10)}
)


def readable(text: str) -> str:
    """The text in lower case with plain quotes and digits, character for character."""
    return fold(text).translate(_SAME_LENGTH)


def languages_in(folded: str, language: str | None = None) -> tuple[str, ...]:
    """Which tables can match at all; a language given leaves only its own."""
    if language is not None:
        return (language,)
    has_han, has_letter = _HAN.search(folded), _LETTER.search(folded)
    return tuple(code for code, found in (("zh", has_han), ("en", has_letter)) if found)


def compiled(patterns: Iterable[str], language: str) -> Pattern[str] | None:
    """One expression for all of the patterns; None for none."""
    expressions = [_expression(pattern, language) for pattern in patterns]
    if not expressions:
        return None
    joined = "|".join(expressions)
    return re.compile(rf"\b(?:{joined})" if language == "en" else joined)


def _expression(pattern: str, language: str) -> str:
    short, long = _GAPS[language]
    if language == "en":
        for short_form, forms in _SAME_VERB.items():
            pattern = pattern.replace(short_form, forms)
        prefix = pattern.endswith("*")
        pattern = re.sub(r"(?<=\w)\*", "\x00", pattern)
        pattern = re.sub(r" (?!\?)", _BLANK, pattern.replace(" ?", "\x01"))
        pattern = pattern.replace("\x01", r"[ \-]?").replace("\x00", _WORD_REST)
        pattern += "" if prefix else r"(?![\w])"
    return pattern.replace("~~?", f"(?:{long})?").replace("~~", long).replace("~?", f"(?:{short})?").replace("~", short)
