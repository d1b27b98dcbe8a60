"""Invented dialogues and knowledge for the tests: nothing here was said by anybody."""

from __future__ import annotations

import json
import random
from pathlib import Path

from vrbot.dialogue.encoding import TextEncoder, read_pieces
from vrbot.dialogue.segment import RustJieba
from vrbot.dialogue.session import CATEGORIES, Action, Session, Turn
from vrbot.dialogue.vocabulary import Vocabulary, build_characters, build_vocabulary
from vrbot.knowledge.entities import Inventory
from vrbot.knowledge.linking import Linker

NAMES = ("咳嗽", "发烧", "头痛", "止咳糖浆", "退热贴", "CT", "气管炎", "流感")
TYPES = ("symptom", "symptom", "symptom", "medicine", "medicine", "test", "disease", "disease")
SURFACES = {
    **{name: (number,) for number, name in enumerate(NAMES)},
    "老是咳": (0,),
    "烧得头痛": (1, 2),
    "发热": (1,),
}
TRIPLES = [
    ("气管炎", "contains_symptom", "咳嗽"),
    ("流感", "contains_symptom", "发烧"),
    ("流感", "contains_symptom", "头痛"),
    ("止咳糖浆", "to_treat", "气管炎"),
    ("退热贴", "to_treat", "流感"),
    ("气管炎", "check_item", "ct"),
]
ALIASES = {"发热": "发烧"}
LEXICON = {"老是咳": ["咳嗽"], "烧得头痛": ["发烧", "头痛"]}

SIZES = {"train": 30, "valid": 5, "test": 7}
"""Dialogues in each split of the invented files."""

PATIENT = ("我家孩子{}三天了", "昨天夜里{}，还{}", "没有{}。", "{}！怎么办？", "这两天 好一些了", "拍了{}，说是{}", "")
PHYSICIAN = ("有没有{}？", "可以用{}，多喝水。", "考虑{}，建议查{}。", "不客气，祝早日康复。", "{}{}多久了", "")


def invented_sessions(count: int = 40, seed: int = 0, prefix: str = "s") -> list[Session]:
    """Sessions of one to seven turns, some turns labelled; no turn is silent on both sides."""
    random_source = random.Random(seed)
    return [
        Session(f"{prefix}-{number}", tuple(_turn(random_source) for _ in range(random_source.randint(1, 7))))
        for number in range(count)
    ]


def _turn(random_source: random.Random) -> Turn:
    patient, physician = "", ""
    while not patient + physician:
        patient = _filled(random_source.choice(PATIENT), random_source) * random_source.choice((1, 1, 2))
        physician = _filled(random_source.choice(PHYSICIAN), random_source)
    state = random_source.choice((None, (), _names(random_source)))
    category = random_source.choice((None, *CATEGORIES))
    keywords = random_source.choice((None, (), _names(random_source)))
    action = None if category is None and keywords is None else Action(category, keywords)
    return Turn(patient, physician, state, action)


def _filled(text: str, random_source: random.Random) -> str:
    return text.format(*(random_source.choice([*SURFACES, "ct"]) for _ in range(2)))


def _names(random_source: random.Random) -> tuple[str, ...]:
    return tuple(random_source.sample(NAMES[:5], random_source.randint(1, 4)))


def invented_inventory() -> Inventory:
    return Inventory(NAMES, TYPES, SURFACES)


def invented_encoder(sessions: list[Session]) -> TextEncoder:
    """An encoder whose vocabulary knows the names, and the words that occur twice in the sessions."""
    inventory, segmenter = invented_inventory(), RustJieba()
    linker = Linker(inventory.surfaces)
    pieces = read_pieces(texts_of(sessions), linker, segmenter)
    words = build_vocabulary(pieces.word_counts(), inventory.names)
    vocabulary = Vocabulary(words, inventory.names, inventory.surfaces)
    return TextEncoder(linker, segmenter, vocabulary, build_characters(pieces.codes))


def texts_of(sessions: list[Session]) -> list[str]:
    return [text for session in sessions for turn in session.turns for text in (turn.patient, turn.physician)]


def write_knowledge_files(folder: Path) -> dict[str, Path]:
    """A graph, an alias map, a lexicon and a table of entities."""
    rows = ["HEAD,RELATION,TAIL", *(",".join(triple) for triple in TRIPLES)]
    table = ["entity,type", *(f"{name},{kind}" for name, kind in zip(NAMES, TYPES, strict=True))]
    contents = {
        "graph.csv": "\n".join(rows) + "\n",
        "alias.json": json.dumps(ALIASES, ensure_ascii=False),
        "lexicon.json": json.dumps(LEXICON, ensure_ascii=False),
        "entities.csv": "\n".join(table) + "\n",
    }
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
    return {name.partition(".")[0]: folder / name for name in contents}


def contents(directory: Path) -> dict[str, bytes]:
    """Every file of a directory."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
