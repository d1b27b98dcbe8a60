"""A model in conversation: replies from the prior networks only."""
