"""What was said: sessions, text, vocabularies, prepared corpora and batches; no networks."""
