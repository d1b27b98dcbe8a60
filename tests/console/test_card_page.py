"""The model card is taken apart as text, and its own phrases are known in Chinese."""

from __future__ import annotations

from vrbot.agent.card import INTENDED_USE
from vrbot.serving.console.card_view import Code, Grid, Heading, Paragraph, blocks_of
from vrbot.serving.console.words.card import in_language

CARD = """# vrbot

First line
second line with `code`.

```python
| not | a table |
# not a heading
```

## Sizes

| what | size |
| --- | ---: |
| parameters | 1,234 |
| **graph** | 5 triples in 2 relations |

<script>alert(1)</script>
"""


def test_a_card_becomes_headings_paragraphs_code_and_tables() -> None:
    assert blocks_of(CARD) == [
        Heading(1, "vrbot"),
        Paragraph("First line second line with code."),
        Code("| not | a table |\n# not a heading"),
        Heading(2, "Sizes"),
        Grid(("what", "size"), (("parameters", "1,234"), ("graph", "5 triples in 2 relations"))),
        Paragraph("<script>alert(1)</script>"),
    ]
    assert blocks_of("") == []


def test_every_paragraph_of_the_intended_use_is_known_in_chinese() -> None:
    for paragraph in INTENDED_USE.split("\n\n"):
        told = " ".join(paragraph.split())
        assert in_language(told, "zh")[0] > "一"
        assert in_language(told, "en") == told


def test_numbers_stay_in_translated_phrases() -> None:
    assert in_language("5 triples in 2 relations", "zh") == "5 条三元组，2 种关系"
    assert in_language("something else", "zh") == "something else"
