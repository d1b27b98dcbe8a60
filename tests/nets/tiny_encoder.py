"""A pretrained encoder that nobody trained: a BERT of two narrow layers with random weights, in a folder."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import torch

from vrbot.config import Config

SIGNS = "我咳嗽三天了有没发烧头痛考虑流感查胸片怎么办可以用退热贴止糖浆谢不客气你好请说乏力两吗昨腹泻多喝水孩子拍是的，"
MARKS = ("[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
FEATURES, POSITIONS = 8, 64


def write_tiny_encoder(folder: Path, *, seed: int = 0, layers: int = 2) -> Path:
    """Writes config.json, model.safetensors (float16) and vocab.txt; the weights are large, to tell words apart."""
    from transformers import BertConfig, BertModel

    vocabulary = [*MARKS, *dict.fromkeys(SIGNS), "ab", "##c", "##d"]
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=FEATURES,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=POSITIONS,
        initializer_range=0.5,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertModel(config, add_pooling_layer=False)
    model.half().save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    return folder


@cache
def tiny_encoder() -> Path:
    """The same folder for all tests of a process."""
    root = Path(tempfile.mkdtemp(prefix="tiny-encoder-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return write_tiny_encoder(root / "encoder")


def with_tiny_encoder(config: Config) -> Config:
    """The same settings with the tiny encoder."""
    return config.with_settings(
        {"pretrained.directory": str(tiny_encoder()), "pretrained.layers": 2, "pretrained.learning_layers": 1}
    )
