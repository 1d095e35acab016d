"""Tells waiting for work from contention."""
