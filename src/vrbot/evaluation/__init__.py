"""Measuring: replies, states and actions against what physicians said; knows records of turns, no model."""
