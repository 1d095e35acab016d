"""Classifies waits as idle (for work) or contended."""
