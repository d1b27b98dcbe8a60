"""From text to ids: mentions stay whole, and there is one way only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialogue.invented import NAMES, SURFACES, invented_encoder, invented_sessions, texts_of
from vrbot.dialogue.encoding import merge_pieces, read_pieces, write_pieces
from vrbot.dialogue.segment import (
    SEGMENTERS,
    Jieba,
    RustJieba,
    Segmenter,
    Spaces,
    Token,
    open_segmenter,
    segment,
)
from vrbot.dialogue.vocabulary import EOS, PAD, UNK
from vrbot.errors import UsageError
from vrbot.knowledge.linking import Linker

LINKER = Linker(SURFACES)
ENCODER = invented_encoder(invented_sessions())
TEXT = st.lists(
    st.one_of(st.sampled_from([*SURFACES, " ", "\n", "，", "ct ", "three-day", "3.5", "孩子"]), st.text(max_size=5)),
    max_size=8,
).map("".join)


def test_a_mention_is_one_token_and_the_gaps_are_cut_by_the_segmenter() -> None:
    tokens = segment("孩子烧得头痛，做了 Ct", LINKER, RustJieba())
    assert tokens == [
        Token("孩子", ()),
        Token("烧得头痛", (1, 2)),
        Token("，", ()),
        Token("做", ()),
        Token("了", ()),
        Token("Ct", (5,)),
    ]


@pytest.mark.parametrize("segmenter", [RustJieba(), Jieba(), Spaces()], ids=lambda segmenter: str(segmenter.name))
@given(texts=st.lists(TEXT, max_size=6))
def test_reading_many_texts_at_once_gives_the_tokens_of_each_alone(segmenter: Segmenter, texts: list[str]) -> None:
    pieces = read_pieces(texts, LINKER, segmenter)
    for i, text in enumerate(texts):
        kinds = [pieces.kinds[k] for k in pieces.ids[pieces.offsets[i] : pieces.offsets[i + 1]]]
        read = [Token(kind, ()) if isinstance(kind, str) else Token(*kind) for kind in kinds]
        assert read == segment(text.encode("utf-8", "replace").decode(), LINKER, segmenter)


@given(texts=st.lists(TEXT, max_size=6), cut=st.integers(0, 6))
def test_reading_in_two_parts_and_merging_gives_the_same_ids(texts: list[str], cut: int) -> None:
    whole = ENCODER.encode(texts)
    parts = [read_pieces(part, ENCODER.linker, ENCODER.segmenter) for part in (texts[:cut], texts[cut:])]
    merged = write_pieces(merge_pieces(parts), ENCODER.vocabulary, ENCODER.characters)
    for name, array in vars(whole).items():
        assert np.array_equal(array, getattr(merged, name)), name


@given(text=TEXT)
def test_encoding_is_the_obvious_loop_over_tokens(text: str) -> None:
    tokens: list[int] = []
    mentions: list[tuple[int, int]] = []
    for token in segment(text, ENCODER.linker, ENCODER.segmenter):
        word = ENCODER.vocabulary.find(token.text)
        if word is not None or not token.entities:
            mentions += [(entity, len(tokens)) for entity in token.entities]
            tokens.append(UNK if word is None else word)
        else:
            for entity in token.entities:
                mentions.append((entity, len(tokens)))
                tokens.append(int(ENCODER.vocabulary.entity_word[entity]))
    encoded = ENCODER.encode([text])
    assert encoded.tokens.tolist() == tokens
    found = list(zip(encoded.mention_entities.tolist(), encoded.mention_positions.tolist(), strict=True))
    assert found == mentions


def test_a_mention_outside_the_vocabulary_is_written_with_the_names_of_its_entities() -> None:
    encoder = invented_encoder([])
    encoded = encoder.encode(["烧得头痛"])
    assert [encoder.vocabulary.words[token] for token in encoded.tokens] == ["发烧", "头痛"]
    assert encoded.mention_entities.tolist() == [1, 2]
    assert encoded.mention_positions.tolist() == [0, 1]


def test_an_entity_mention_is_never_unknown() -> None:
    encoded = ENCODER.encode(list(SURFACES) + texts_of(invented_sessions(seed=9)))
    starts = np.repeat(encoded.utterance_offsets[:-1], np.diff(encoded.mention_offsets))
    assert len(starts) > 20
    assert not np.any(encoded.tokens[starts + encoded.mention_positions] == UNK)


def test_characters_are_those_of_the_text_in_lower_case_without_superfluous_blanks() -> None:
    encoded = ENCODER.encode(["  孩子\n CT ", ""])
    assert encoded.character_offsets.tolist() == [0, 5, 5]
    same = ENCODER.encode(["孩子 ct"])
    assert encoded.characters.tolist() == same.characters.tolist()


def test_words_become_readable_text_again() -> None:
    assert ENCODER.segmenter.join(["做", "CT", "3", "天"]) == "做CT 3天"
    assert Spaces().join(Spaces().cut("Well, it's 3.5 mg (twice)?")) == "Well, it's 3.5 mg (twice)?"
    word = ENCODER.vocabulary.id_of
    assert ENCODER.decode([word("咳嗽"), word("，"), PAD, word("CT"), EOS, word("咳嗽")]) == "咳嗽，CT"


def test_a_reply_names_nothing_twice_in_a_row_of_a_list() -> None:
    assert _as_reply("有没有", "发烧", "，", "发热", "，", "发烧", "？") == "有没有发烧？"
    assert _as_reply("咳嗽", "，", "CT", "，", "咳嗽") == "咳嗽，CT，咳嗽"
    assert _as_reply("咳嗽", "咳嗽") == "咳嗽咳嗽"
    assert _as_reply("孩子", "，", "孩子") == "孩子，孩子"


@given(st.lists(st.sampled_from([*NAMES, "，", "孩子", "查"]), max_size=12))
def test_a_reply_keeps_every_entity_and_every_word_that_names_none(words: list[str]) -> None:
    said = _as_reply(*words)
    assert all((word in said) == (word in words) for word in (*NAMES, "孩子", "查"))


def _as_reply(*words: str) -> str:
    return ENCODER.decode([ENCODER.vocabulary.id_of(word) for word in words])


def test_an_unknown_segmenter_is_refused_with_the_choices() -> None:
    with pytest.raises(UsageError, match=", ".join(SEGMENTERS)):
        open_segmenter("knife")


def test_pkuseg_without_its_model_is_refused_with_the_option_to_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--segmenter-model"):
        open_segmenter("pkuseg")
    with pytest.raises(UsageError, match="is not a directory"):
        open_segmenter("pkuseg", tmp_path / "nowhere")


def test_the_names_of_the_invented_world_are_entities() -> None:
    assert len(ENCODER.vocabulary.entity_word) == len(NAMES)
