"""One module per outside format; each finds the dialogues of a file and leaves the reading of each to its draft."""
