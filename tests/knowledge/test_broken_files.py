"""Whatever happens to a file, reading it gives data or a `DataError`, and nothing else."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vrbot.errors import DataError
from vrbot.knowledge.aliases import read_aliases
from vrbot.knowledge.entities import Inventory, read_entities, read_lexicon, read_vocabulary
from vrbot.knowledge.triples import read_triples

SOUND: dict[str, tuple[str, Callable[[Path], Any], bytes]] = {
    "triples in CSV": ("graph.csv", read_triples, "HEAD,RELATION,TAIL\n感冒,contains_symptom,咳嗽\na,b,c\n".encode()),
    "triples in JSON": ("graph.json", read_triples, json.dumps([["a", "b", "c"], {"head": "a"}]).encode()),
    "aliases": ("alias.json", read_aliases, json.dumps({"伤风": "感冒", "b": "c"}, ensure_ascii=False).encode()),
    "lexicon": ("lexicon.json", read_lexicon, json.dumps({"a": ["b", "c"], "d": ["e"]}).encode()),
    "entities": ("entities.csv", read_entities, b'entity,type,mentions\ncough,symptom,3\n"a,b",test,1\n'),
    "vocabulary": ("vocab.csv", read_vocabulary, b"Word,Is_know\nthe,0\ncough,1\n"),
    "inventory": (
        "inventory.json",
        Inventory.load,
        json.dumps({"names": ["a", "b"], "types": ["test", "other"], "surfaces": {"a": [0], "c": [0, 1]}}).encode(),
    ),
}

NASTY = (
    b"\x00",
    b"\xff",
    b'"',
    b"{",
    b"]",
    b",",
    b"\n",
    b"null",
    b"1e999",
    b"\\ud800",
    "İ".encode(),
    b"\r",
    b"9" * 5000,
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


@st.composite
def mutated(draw: st.DrawFn, sound: bytes) -> bytes:
    """A sound file with pieces cut out, doubled, overwritten or put in."""
    content = sound
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 12)))
        piece = draw(st.sampled_from((*NASTY, b"", content[start:end] * 2)) | st.binary(max_size=4))
        content = content[:start] + piece + content[end:]
    return content


def reads_or_complains(kind: str, content: bytes) -> None:
    name, read, _ = SOUND[kind]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        complaint = None
        try:
            read(path)
        except DataError as error:
            complaint = str(error)
    assert complaint is None or (complaint.startswith(str(path)) and complaint.isprintable())


@pytest.mark.parametrize("kind", SOUND)
def test_a_mutated_file_gives_data_or_a_data_error(kind: str) -> None:
    @settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
    @given(mutated(SOUND[kind][2]))
    def check(content: bytes) -> None:
        reads_or_complains(kind, content)

    check()


@pytest.mark.parametrize("kind", [kind for kind in SOUND if SOUND[kind][0].endswith("json")])
def test_json_of_any_shape_gives_data_or_a_data_error(kind: str) -> None:
    @settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
    @given(anything)
    def check(value: Any) -> None:
        reads_or_complains(kind, json.dumps(value).encode())

    check()
