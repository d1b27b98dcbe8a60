"""Trivial systems that keep every table honest: whoever does not beat them has learned nothing worth having."""
