"""The tiny corpus, prepared once for this folder."""

from tests.model.tiny import tiny_corpus

__all__ = ["tiny_corpus"]
