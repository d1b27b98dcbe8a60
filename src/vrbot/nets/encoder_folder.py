"""A pretrained encoder as a folder: config.json, weights (safetensors) and a vocabulary. Nothing is ever fetched.

Sub-tokens are cut by tokenizer.json where there is one, or else by the words of vocab.txt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from vrbot.dialogue.vocabulary import SEP, SPECIALS, UNK
from vrbot.errors import UsageError, VRBotError
from vrbot.files import sha256_of

CONFIG, TOKENIZER, TOKENIZER_CONFIG, VOCABULARY = "config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"
WEIGHTS, WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
BEGIN, END, UNKNOWN, PADDING = ("[CLS]", "<s>"), ("[SEP]", "</s>"), ("[UNK]", "<unk>"), ("[PAD]", "<pad>")
"""What the marks are called in the vocabularies of the known families."""


@dataclass(frozen=True)
class EncoderFolder:
    """The folder of an encoder with all it needs; `open` refuses any other."""

    path: Path
    vocabulary: Path
    weights: tuple[Path, ...]

    @classmethod
    def open(cls, directory: Path | str) -> EncoderFolder:
        path = Path(directory)
        if not path.is_dir():
            raise UsageError(
                f"the pretrained encoder {path} is not there: put it back (a link will do), or name another folder"
            )
        if not (path / CONFIG).is_file():
            raise UsageError(f"{path} has no {CONFIG}: give the folder of an encoder in the format of transformers")
        known = [path / name for name in (TOKENIZER, VOCABULARY) if (path / name).is_file()]
        if not known:
            raise UsageError(
                f"{path} has no vocabulary: put its {TOKENIZER} or {VOCABULARY} there "
                "(the fast tokenizer of transformers writes one with save_pretrained)"
            )
        return cls(path, known[0], _weights_in(path))

    @property
    def files(self) -> tuple[Path, ...]:
        """All that is needed to build the encoder again."""
        index = [path for path in (self.path / WEIGHTS_INDEX, self.path / TOKENIZER_CONFIG) if path.is_file()]
        return (self.path / CONFIG, self.vocabulary, *index, *self.weights)

    def digest(self) -> str:
        """A SHA-256 over those of the weights and the vocabulary, in hexadecimal."""
        lines = [f"{path.name} {sha256_of(path)}\n" for path in (self.vocabulary, *self.weights)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def _weights_in(path: Path) -> tuple[Path, ...]:
    if (path / WEIGHTS).is_file():
        return (path / WEIGHTS,)
    if (path / WEIGHTS_INDEX).is_file():
        names = set(json.loads((path / WEIGHTS_INDEX).read_text(encoding="utf-8"))["weight_map"].values())
        return tuple(path / name for name in sorted(names))
    raise UsageError(f"{path} has no {WEIGHTS}: other forms of weights are not read; save them as safetensors")


def load_encoder(folder: EncoderFolder) -> nn.Module:
    """The encoder in float32, without a pooling layer; its random numbers are nobody else's."""
    transformers = _transformers()
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES as READERS

    try:
        config = transformers.AutoConfig.from_pretrained(folder.path, local_files_only=True)
    except (ValueError, OSError, KeyError) as error:
        raise UsageError(f"{folder.path / CONFIG} cannot be read: {' '.join(str(error).split())[:200]}") from error
    if config.model_type not in READERS or config.is_encoder_decoder or getattr(config, "is_decoder", False):
        raise UsageError(
            f"{folder.path} holds a model of type {config.model_type!r}, which does not read in both directions: "
            "give an encoder such as bert, roberta, electra or roformer"
        )
    try:
        with _quiet(), torch.random.fork_rng(devices=[]):
            encoder, report = transformers.AutoModel.from_pretrained(
                folder.path, config=config, local_files_only=True, dtype=torch.float32, output_loading_info=True
            )
    except (RuntimeError, SafetensorError) as error:
        raise UsageError(f"{folder.path}: the weights are not those of its {CONFIG}: fetch it again") from error
    missing = sorted(name for name in report["missing_keys"] if "pooler" not in name)
    if missing:
        raise UsageError(f"{folder.path} lacks weights its {CONFIG} asks for ({missing[0]}): fetch it again")
    if hasattr(encoder, "pooler"):
        encoder.pooler = None
    module: nn.Module = encoder
    return module


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise VRBotError("a pretrained encoder needs transformers: pip install 'vrbot[bert]'") from error
    return transformers


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside the block transformers neither draws bars nor warns of layers that are not used here."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@dataclass(frozen=True, eq=False)
class Pieces:
    """The sub-tokens of every word, one after the other, and the encoder's own marks."""

    values: Tensor  # [all sub-tokens]
    offsets: Tensor  # [V + 1] those of word w: offsets[w]:offsets[w + 1]
    begin: int
    end: int
    padding: int


def cut_words(folder: EncoderFolder, words: Sequence[str]) -> Pieces:
    """Cuts each word of a vocabulary by itself; the specials have none but the unknown word and the separator."""
    tokenizer = _tokenizer(folder)
    begin, end, unknown, padding = (_mark(tokenizer, names, folder) for names in (BEGIN, END, UNKNOWN, PADDING))
    cut: list[list[int]] = [[] for _ in SPECIALS]
    cut[UNK], cut[SEP] = [unknown], [end]
    ordinary = tokenizer.encode_batch(list(words[len(SPECIALS) :]), add_special_tokens=False)
    cut += [encoding.ids or [unknown] for encoding in ordinary]
    counts = torch.tensor([0, *(len(pieces) for pieces in cut)])
    values = torch.tensor([piece for pieces in cut for piece in pieces])
    return Pieces(values, counts.cumsum(0), begin, end, padding)


def _tokenizer(folder: EncoderFolder) -> Any:
    _transformers()
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    if folder.vocabulary.name == TOKENIZER:
        tokenizer: Any = Tokenizer.from_file(str(folder.vocabulary))
        tokenizer.no_truncation()
        tokenizer.no_padding()
    else:
        lines = folder.vocabulary.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        vocabulary = {line.rstrip("\r"): i for i, line in enumerate(lines)}
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=UNKNOWN[0]))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=_lower_case(folder))
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    room = json.loads((folder.path / CONFIG).read_text(encoding="utf-8")).get("vocab_size")
    if room is not None and tokenizer.get_vocab_size() > room:
        raise UsageError(
            f"{folder.vocabulary} has {tokenizer.get_vocab_size()} sub-tokens, the encoder beside it {room}: "
            "they do not belong together; fetch the folder again"
        )
    return tokenizer


def _lower_case(folder: EncoderFolder) -> bool:
    path = folder.path / TOKENIZER_CONFIG
    return not path.is_file() or bool(json.loads(path.read_text(encoding="utf-8")).get("do_lower_case", True))


def _mark(tokenizer: Any, names: Sequence[str], folder: EncoderFolder) -> int:
    for name in names:
        found: int | None = tokenizer.token_to_id(name)
        if found is not None:
            return found
    raise UsageError(f"{folder.vocabulary} has no {' or '.join(names)}: it is not the vocabulary of an encoder")
