"""The tiny corpora, prepared once for this folder."""

from tests.model.tiny import tiny_corpus, tiny_linked_corpus

__all__ = ["tiny_corpus", "tiny_linked_corpus"]
