"""Measuring replies, states and actions: metrics know records of turns only, other modules ask models for them."""
