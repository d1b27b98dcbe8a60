"""Laws of words read by a pretrained encoder: exact alignment, no influence of neighbours, frozen means frozen."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.nets.tiny_encoder import FEATURES, POSITIONS, tiny_encoder, write_tiny_encoder
from tests.real_data import REPOSITORY
from vrbot.dialogue.vocabulary import BOS, EOS, PAD, SEP, SPECIALS, UNK
from vrbot.errors import ConfigError, IntegrityError, UsageError
from vrbot.nets.encoder_folder import EncoderFolder, cut_words, load_encoder
from vrbot.nets.pretrained import ContextualWords, FrozenReader, PretrainedReader, open_reader

WORDS = (*SPECIALS, "咳嗽", "发烧", "头痛", "我", "ABCD", "无此字", "\u200b", "三天了，")
LONG = 5 + WORDS[5:].index("三天了，")
ROWS = torch.tensor(
    [
        [5, 6, SEP, 7, 8, 9, PAD, PAD],
        [SEP, 9, UNK, 10, 11, 12, 5, EOS],
        [BOS, 7, EOS, PAD, PAD, PAD, PAD, PAD],
        [5, 6, SEP, 7, 8, 9, PAD, PAD],
        [PAD] * 8,
    ]
)


def reader_of(
    directory: Path | None = None, *, freeze: bool = True, layers: int = 2, cache: int = 1_000_000
) -> FrozenReader | PretrainedReader:
    place = tiny_encoder() if directory is None else directory
    return open_reader(place, WORDS, layers=layers, freeze=freeze, learning_rate_factor=0.1, cache_bytes=cache)


def fine_tuned(layers: int = 2) -> PretrainedReader:
    reader = reader_of(freeze=False, layers=layers)
    assert isinstance(reader, PretrainedReader)
    return reader.eval()


def frozen(cache: int = 1_000_000) -> FrozenReader:
    reader = reader_of(cache=cache)
    assert isinstance(reader, FrozenReader)
    return reader


def slowly(row: list[int], layers: int) -> Tensor:
    """The features of one row, word by word and without padding."""
    folder = EncoderFolder.open(tiny_encoder())
    encoder, pieces = load_encoder(folder).eval(), cut_words(folder, WORDS)
    cut = [pieces.values[pieces.offsets[word] : pieces.offsets[word + 1]].tolist() for word in row]
    tokens = [pieces.begin, *(piece for word in cut for piece in word), pieces.end]
    with torch.no_grad():
        states = encoder(torch.tensor([tokens]), output_hidden_states=True).hidden_states
    mean = sum(state[0] for state in states[-layers:]) / layers
    features, place = torch.zeros(len(row), FEATURES), 1
    for i, word in enumerate(cut):
        if word:
            features[i] = mean[place : place + len(word)].mean(dim=0)
        place += len(word)
    return features


def pieces_of(word: str) -> list[str]:
    folder = EncoderFolder.open(tiny_encoder())
    names = (folder.path / "vocab.txt").read_text(encoding="utf-8").split("\n")
    pieces, place = cut_words(folder, WORDS), WORDS.index(word)
    return [names[i] for i in pieces.values[pieces.offsets[place] : pieces.offsets[place + 1]].tolist()]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("咳嗽", ["咳", "嗽"]),
        ("ABCD", ["ab", "##c", "##d"]),
        ("无此字", ["[UNK]", "[UNK]", "[UNK]"]),
        ("\u200b", ["[UNK]"]),
        ("三天了，", ["三", "天", "了", "，"]),
        ("<pad>", []),
        ("<bos>", []),
        ("<eos>", []),
        ("<unk>", ["[UNK]"]),
        ("<sep>", ["[SEP]"]),
    ],
)
def test_a_word_is_cut_into_the_longest_sub_tokens_and_specials_have_the_encoders_own(
    word: str, expected: list[str]
) -> None:
    assert pieces_of(word) == expected


@pytest.mark.parametrize("layers", [1, 2])
def test_the_features_of_a_word_are_the_mean_of_the_states_of_its_own_sub_tokens(layers: int) -> None:
    with torch.no_grad():
        found = fine_tuned(layers)(ROWS)
    assert found.shape == (*ROWS.shape, FEATURES)
    for row, features in zip(ROWS.tolist(), found, strict=True):
        torch.testing.assert_close(features, slowly(row, layers), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(found[0, 0], found[1, 6], atol=0.1)  # the same word elsewhere is read otherwise


@pytest.mark.parametrize("reader", [fine_tuned, frozen])
def test_padding_and_the_rows_beside_it_change_nothing(reader: type) -> None:
    read: nn.Module = reader()
    with torch.no_grad():
        together = read(ROWS)
        wider = read(nn.functional.pad(ROWS, (0, 30), value=PAD))
        alone = torch.cat([read(row[None]) for row in ROWS])
    torch.testing.assert_close(wider[:, : ROWS.shape[1]], together, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(alone, together, atol=1e-5, rtol=1e-5)
    assert not wider[:, ROWS.shape[1] :].any()
    assert read(ROWS[:0]).shape == (0, ROWS.shape[1], FEATURES)


def test_a_row_too_long_for_the_encoder_keeps_its_end() -> None:
    row = torch.full((1, 40), LONG)  # four sub-tokens each, and room for 61 with the marks
    kept = (POSITIONS - 1 - 2) // 4
    with torch.no_grad():
        read = fine_tuned()
        features, end = read(row), read(row[:, -kept:])
    assert not features[:, :-kept].any()
    torch.testing.assert_close(features[:, -kept:], end, atol=1e-5, rtol=1e-5)


def test_what_is_recalled_is_what_was_computed_whatever_the_order_of_the_rows() -> None:
    read = frozen()
    first = read(ROWS)
    computed = read.cache.misses
    order = torch.tensor([4, 2, 1, 0, 3])
    torch.testing.assert_close(read(ROWS[order]), first[order], atol=0, rtol=0)
    assert (read.cache.misses, read.cache.hits) == (computed, len(ROWS) - 1)  # two rows are one
    with torch.no_grad():
        exact = fine_tuned()(ROWS)
    torch.testing.assert_close(first, exact, atol=1e-5, rtol=1e-3)
    torch.testing.assert_close(first.half().float(), first, atol=0, rtol=0)
    torch.testing.assert_close(frozen(cache=0)(ROWS[order]), first[order], atol=1e-5, rtol=1e-3)


def test_a_full_cache_keeps_what_it_has_and_takes_no_more() -> None:
    row = 6 * FEATURES * 2 + 6 * 4  # float16 features and the key of the first row
    read = frozen(cache=row)
    for _ in range(3):
        torch.testing.assert_close(read(ROWS), frozen()(ROWS), atol=1e-5, rtol=1e-3)
    assert read.cache.size <= row
    assert read.cache.hits > 0
    assert frozen(cache=0).cache.capacity == 0


def test_a_frozen_encoder_gets_no_gradient_drops_nothing_and_is_not_saved() -> None:
    words = ContextualWords(nn.Embedding(len(WORDS), 6, padding_idx=PAD), frozen(cache=0), dropout=0.0).train()
    words(ROWS).sum().backward()
    learning = {name for name, parameter in words.named_parameters() if parameter.requires_grad}
    assert learning == {"words.weight", "norm.weight", "norm.bias", "projection.weight", "projection.bias"}
    assert all(parameter.grad is None for parameter in words.reader.parameters())
    torch.testing.assert_close(words(ROWS), words.eval()(ROWS), atol=0, rtol=0)
    assert set(words.state_dict()) == learning | {"reader.reader.digest"}
    words.load_state_dict(words.state_dict())
    with pytest.raises(RuntimeError, match=r"projection\.bias"):
        words.load_state_dict({name: value for name, value in words.state_dict().items() if name != "projection.bias"})


def test_an_encoder_that_learns_gets_a_gradient_and_is_saved() -> None:
    read = fine_tuned().train()
    read(ROWS).square().sum().backward()
    without = {name for name, parameter in read.named_parameters() if parameter.grad is None}
    assert not without
    assert any(name.startswith("encoder.") for name in read.state_dict())


def test_a_model_is_not_loaded_with_another_encoder(tmp_path: Path) -> None:
    other = reader_of(write_tiny_encoder(tmp_path / "other", seed=1))
    with pytest.raises(
        IntegrityError, match=r"other is not the encoder this model was trained with .* put that one back"
    ):
        other.load_state_dict(frozen().state_dict())


def test_building_a_reader_uses_up_no_random_numbers_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    reader_of()
    assert torch.equal(torch.rand(3), expected)
    assert capfd.readouterr() == ("", "")


def copied(folder: Path, *, without: str = "", **changes: object) -> Path:
    """The tiny encoder without a file, or with other values in config.json."""
    shutil.copytree(tiny_encoder(), folder)
    if without:
        (folder / without).unlink()
    if changes:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **changes}))
    return folder


def test_a_folder_that_is_no_encoder_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    def refusal(directory: Path) -> str:
        with pytest.raises(UsageError) as caught:
            reader_of(directory)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert refusal(tmp_path / "gone").endswith(
        "gone is not there: put it back (a link will do), or name another folder"
    )
    assert "has no config.json" in refusal(copied(tmp_path / "1", without="config.json"))
    assert "has no vocabulary: put its tokenizer.json or vocab.txt there" in refusal(
        copied(tmp_path / "2", without="vocab.txt")
    )
    assert "has no model.safetensors" in refusal(copied(tmp_path / "3", without="model.safetensors"))
    assert "type 'gpt2', which does not read in both directions" in refusal(copied(tmp_path / "4", model_type="gpt2"))
    assert "does not read in both directions" in refusal(copied(tmp_path / "5", is_decoder=True))
    assert "lacks weights its config.json asks for" in refusal(copied(tmp_path / "6", num_hidden_layers=3))
    assert "sub-tokens, the encoder beside it 9" in refusal(copied(tmp_path / "7", vocab_size=9))
    assert "the weights are not those of its config.json" in refusal(copied(tmp_path / "9", hidden_size=6))
    marks = copied(tmp_path / "8")
    vocabulary = (marks / "vocab.txt").read_text(encoding="utf-8")
    (marks / "vocab.txt").write_text(vocabulary.replace("[CLS]", "[X]"), encoding="utf-8")
    assert "has no [CLS] or <s>" in refusal(marks)


def test_more_layers_than_there_are_cannot_be_averaged() -> None:
    with pytest.raises(ConfigError, match=r"pretrained\.layers must be at most 2"):
        reader_of(layers=3)


def test_the_tokenizer_file_of_a_folder_is_used_before_its_list_of_words(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    folder = copied(tmp_path / "with")
    vocabulary = {name: i for i, name in enumerate((folder / "vocab.txt").read_text("utf-8").split("\n")[:-1])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.enable_truncation(1)
    tokenizer.save(str(folder / "tokenizer.json"))
    pieces, place = cut_words(EncoderFolder.open(folder), WORDS), WORDS.index("ABCD")
    assert pieces.values[pieces.offsets[place] : pieces.offsets[place + 1]].tolist() == [vocabulary["[UNK]"]]
    both = pieces.values[pieces.offsets[5] : pieces.offsets[6]].tolist()
    assert both == [vocabulary["咳"], vocabulary["嗽"]]


def test_a_real_encoder_reads_chinese_words_in_their_context() -> None:
    directory = REPOSITORY.parent / "shared" / "models" / "roformer-zh-small"
    if not directory.is_dir():
        pytest.skip(f"the encoder {directory.name!r} is not in shared/models beside the checkout")
    words = (*SPECIALS, "发烧", "咳嗽", "汽车", "我", "孩子")
    read = open_reader(directory, words, layers=3, freeze=True, learning_rate_factor=1.0, cache_bytes=0)
    assert isinstance(read, FrozenReader)
    assert not (read.reader.pieces == read.reader.pieces[0]).all()
    features = read(torch.tensor([[8, 5], [8, 6], [8, 7], [9, 5]]))
    assert features.shape == (4, 2, 384)
    fever, cough, car, other = (features[:, 1] - features[:, 1].mean(dim=0)).unbind()
    assert nn.functional.cosine_similarity(fever, other, dim=0) > nn.functional.cosine_similarity(fever, car, dim=0)
    assert not torch.allclose(fever, cough)
